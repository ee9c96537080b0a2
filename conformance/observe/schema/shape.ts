// What our dashboards may hold, put together from Grafana's own types, stricter where we are: one kind of data source, and
// a query's keys named one by one. Each exported type becomes a JSON schema.
import type { AnnotationQuery, Dashboard, FieldConfig, GraphFieldConfig, Panel, RowPanel, TableFieldOptions, VariableModel } from '@grafana/schema';
import type { Options as BarGaugeOptions } from '@grafana/schema/dist/types/raw/composable/bargauge/panelcfg/x/types.gen';
import type { Options as StatOptions } from '@grafana/schema/dist/types/raw/composable/stat/panelcfg/x/types.gen';
import type { Options as TableOptions } from '@grafana/schema/dist/types/raw/composable/table/panelcfg/x/types.gen';
import type { Options as TextOptions } from '@grafana/schema/dist/types/raw/composable/text/panelcfg/x/types.gen';
import type { Options as SeriesOptions } from '@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/types.gen';

interface Source {
  type: 'prometheus';
  uid: '${datasource}';
}

interface Query {
  datasource: Source;
  editorMode: 'code';
  expr: string;
  format: 'time_series' | 'table';
  instant: boolean;
  legendFormat: string;
  range: boolean;
  refId: string;
}

interface Fields<Custom> {
  defaults: Omit<FieldConfig, 'custom'> & { custom?: Custom };
  overrides: NonNullable<Panel['fieldConfig']>['overrides'];
}

type Common = Omit<Panel, 'type' | 'options' | 'fieldConfig' | 'targets' | 'datasource'> & { datasource: Source };
type Of<Type, Options, Custom> = Common & { type: Type; options: Options; fieldConfig: Fields<Custom>; targets: Query[] };

export type Stat = Of<'stat', StatOptions, never>;
export type Bargauge = Of<'bargauge', BarGaugeOptions, never>;
export type Timeseries = Of<'timeseries', SeriesOptions, GraphFieldConfig>;
export type Table = Of<'table', Omit<TableOptions, 'frameIndex'>, TableFieldOptions>;
export type Text = Common & { type: 'text'; options: TextOptions };
export type Row = RowPanel;

type Annotation = Omit<AnnotationQuery, 'target' | 'datasource' | 'snapshotData'> & {
  datasource: Source;
  expr: string;
  step: string;
  titleFormat: string;
  useValueForTime: boolean;
};

type Variable = Omit<VariableModel, 'datasource' | 'query'> & {
  datasource?: Source;
  definition?: string;
  query: string | { qryType: 1; query: string; refId: string };
};

// The panels are held against the types above, one by one: a union of all of them says nothing useful of a mistake.
export type Dash = Omit<Dashboard, 'panels' | 'annotations' | 'templating' | 'snapshot'> & {
  panels: unknown[];
  annotations: { list: Annotation[] };
  templating: { list: Variable[] };
};

// Holds dashboards against Grafana's own types. usage: node check.mjs DASHBOARD.json...
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import Ajv from 'ajv';
import { createGenerator } from 'ts-json-schema-generator';

const TYPES = ['Dash', 'Row', 'Stat', 'Bargauge', 'Timeseries', 'Table', 'Text'];
const here = path.dirname(fileURLToPath(import.meta.url));
// Made once: it takes as long as all other checks together.
const made = path.join(here, 'schemas.json');
if (!fs.existsSync(made)) {
  const schemas = {};
  for (const type of TYPES) {
    const config = { path: path.join(here, 'shape.ts'), tsconfig: path.join(here, 'tsconfig.json'), type, skipTypeCheck: true };
    schemas[type] = createGenerator(config).createSchema(type);
  }
  fs.writeFileSync(`${made}.new`, JSON.stringify(schemas));
  fs.renameSync(`${made}.new`, made);
}

const ajv = new Ajv({ allErrors: true, strict: false });
const checks = Object.entries(JSON.parse(fs.readFileSync(made))).map(([type, schema]) => [type, ajv.compile(schema)]);
const checked = Object.fromEntries(checks);
let wrong = 0;

function check(type, value, where) {
  const isRight = checked[type];
  if (!isRight) {
    console.log(`${where}: no panel of the type ${type} is known here`);
    wrong += 1;
  } else if (!isRight(value)) {
    for (const error of isRight.errors) {
      console.log(`${where}${error.instancePath}: ${error.message} ${JSON.stringify(error.params)}`);
      wrong += 1;
    }
  }
}

for (const file of process.argv.slice(2)) {
  const name = path.basename(file);
  const dashboard = JSON.parse(fs.readFileSync(file));
  check('Dash', dashboard, name);
  for (const panel of dashboard.panels) {
    check(panel.type[0].toUpperCase() + panel.type.slice(1), panel, `${name}: ${panel.title}: `);
  }
}
process.exitCode = wrong ? 1 : 0;

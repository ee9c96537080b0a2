// Values in words, as the units of Grafana that our dashboards use say them.

function scaled(value, steps, digits = 3) {
  const size = Math.abs(value);
  const [factor, suffix] = steps.findLast(([least]) => size >= least) ?? steps[0];
  return `${Number((value / factor).toPrecision(digits))}${suffix}`;
}

const SHORT = [[1, ''], [1e3, ' K'], [1e6, ' Mil'], [1e9, ' Bil']];
const BYTES = [[1, ' B'], [1024, ' KiB'], [1024 ** 2, ' MiB'], [1024 ** 3, ' GiB'], [1024 ** 4, ' TiB']];
const SECONDS = [[1e-6, ' µs'], [1e-3, ' ms'], [1, ' s'], [60, ' min'], [3600, ' hours'], [86400, ' days']];

const number = (value) => (Math.abs(value) < 1 ? `${Number(value.toPrecision(2))}` : scaled(value, SHORT));

const UNITS = {
  none: number,
  short: number,
  percentunit: (value, decimals = 1) => `${Number((100 * value).toFixed(decimals))}%`,
  s: (value) => (value === 0 ? '0 s' : scaled(value, SECONDS)),
  bytes: (value) => (value === 0 ? '0 B' : scaled(value, BYTES)),
  Bps: (value) => `${value === 0 ? '0 B' : scaled(value, BYTES)}/s`,
  ops: (value) => `${number(value)} ops/s`,
  opm: (value) => `${number(value)} ops/m`,
  reqps: (value) => `${number(value)} req/s`,
};

export function inWords(value, unit, decimals) {
  if (!Number.isFinite(value)) return '';
  const rounded = decimals === undefined || unit === 'percentunit' ? value : Number(value.toFixed(decimals));
  return (UNITS[unit] ?? UNITS.none)(rounded, decimals);
}

// Draws one of our dashboards from its JSON, with the numbers of a Prometheus. Only what these dashboards use is known here.
import { inWords } from './units.js';

const COLORS = {
  green: '#73bf69', yellow: '#fade2a', red: '#f2495c', blue: '#5794f2', text: '#d5d7de',
};
const PALETTE = [
  '#73bf69', '#f2cc0c', '#8ab8ff', '#ff780a', '#f2495c', '#5794f2', '#b877d9', '#3274d9', '#37872d', '#fa6400',
];
const CELL = { width: 1576 / 24, height: 38 };
const LEGEND_LINES = 5;

const words = new URLSearchParams(location.search);
const [from, to, step] = ['from', 'to', 'step'].map((name) => Number(words.get(name)));
const wrong = [];

/** What Grafana puts in, everything being chosen. */
function filled(expr) {
  const chosen = { __rate_interval: words.get('rate'), __range: `${to - from}s` };
  return expr.replace(/\$(\w+)/g, (_, name) => chosen[name] ?? '.+');
}

async function ask(target) {
  const query = { query: filled(target.expr) };
  const path = target.instant ? 'query' : 'query_range';
  Object.assign(query, target.instant ? { time: to } : { start: from, end: to, step });
  const answer = await fetch(`/api/v1/${path}?${new URLSearchParams(query)}`);
  const { data, error } = await answer.json();
  if (error) throw new Error(`${error}: ${query.query}`);
  return data.result.map((found) => ({
    labels: found.metric,
    name: named(target.legendFormat, found.metric),
    points: (found.values ?? [found.value]).map(([at, value]) => [at, Number(value)]),
  }));
}

function named(format, labels) {
  if (format !== '__auto') return format.replace(/\{\{(\w+)\}\}/g, (_, label) => labels[label] ?? '');
  const { __name__: metric = '', ...rest } = labels;
  const pairs = Object.entries(rest).map(([label, value]) => `${label}="${value}"`);
  return pairs.length ? `${metric}{${pairs.join(', ')}}` : metric || 'Value';
}

const last = (points) => points.findLast(([, value]) => !Number.isNaN(value))?.[1];
const most = (points) => points.reduce((so_far, [, value]) => (value > so_far ? value : so_far), -Infinity);
const node = (tag, cls, text) => Object.assign(document.createElement(tag), { className: cls ?? '', textContent: text ?? '' });

function colored(value, steps) {
  const reached = steps.findLast((each) => each.value === null || value >= each.value);
  return COLORS[reached.color];
}

function mapped(value, mappings) {
  for (const { type, options } of mappings ?? []) {
    const found = type === 'value' ? options[String(value)] : Number.isNaN(value) && options.match === 'nan' && options.result;
    if (found) return found;
  }
  return null;
}

function stat(body, panel, found) {
  const { unit, decimals, mappings, thresholds } = panel.fieldConfig.defaults;
  const { points } = found[0];
  const value = last(points) ?? NaN;
  const word = mapped(value, mappings);
  const color = word ? COLORS[word.color] : colored(value, thresholds.steps);
  const box = node('div', 'stat');
  if (panel.options.graphMode === 'area' && points.length > 1) box.append(spark(points, color));
  const text = node('b', '', word?.text ?? inWords(value, unit, decimals));
  text.style.color = color;
  box.append(text);
  body.append(box);
}

function spark(points, color) {
  const picture = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  picture.setAttribute('viewBox', '0 0 100 100');
  picture.setAttribute('preserveAspectRatio', 'none');
  const top = Math.max(most(points), 1e-9);
  const seen = points.filter(([, value]) => !Number.isNaN(value));
  const line = seen.map(([at, value]) => `${(100 * (at - from)) / (to - from)},${100 - (95 * value) / top}`);
  const area = document.createElementNS('http://www.w3.org/2000/svg', 'polygon');
  const x = (point) => line.at(point)?.split(',')[0] ?? 0;
  area.setAttribute('points', `${x(0)},100 ${line.join(' ')} ${x(-1)},100`);
  area.setAttribute('fill', color);
  picture.append(area);
  return picture;
}

/** All series on the same times; a time that one lacks is a gap. */
function aligned(found) {
  const times = [...new Set(found.flatMap(({ points }) => points.map(([at]) => at)))].sort((a, b) => a - b);
  const rows = found.map(({ points }) => {
    const values = new Map(points);
    return times.map((at) => (Number.isNaN(values.get(at) ?? NaN) ? null : values.get(at)));
  });
  return [times, rows];
}

function overridden(panel, name) {
  const own = panel.fieldConfig.overrides.find(({ matcher }) => matcher.options === name);
  return Object.fromEntries((own?.properties ?? []).map(({ id, value }) => [id, value]));
}

function lineStyles(panel, found) {
  const { custom } = panel.fieldConfig.defaults;
  return found.map(({ name }, index) => {
    const own = overridden(panel, name);
    const color = COLORS[own.color?.fixedColor] ?? PALETTE[index % PALETTE.length];
    const opacity = own['custom.fillOpacity'] ?? custom.fillOpacity;
    return { color, opacity, dash: own['custom.lineStyle']?.dash, width: custom.lineWidth };
  });
}

function timeseries(body, panel, found) {
  const { unit, custom, thresholds, max } = panel.fieldConfig.defaults;
  const stacked = custom.stacking.mode === 'normal';
  const [times, rows] = aligned(found);
  const styles = lineStyles(panel, found);
  const heights = rows.map((row) => [...row]);
  if (stacked) {
    for (let n = 1; n < heights.length; n += 1) heights[n] = heights[n].map((value, at) => (value ?? 0) + (heights[n - 1][at] ?? 0));
  }
  const order = stacked ? heights.map((_, n) => n).reverse() : heights.map((_, n) => n);
  const series = order.map((n) => ({
    stroke: styles[n].color,
    width: styles[n].width,
    dash: styles[n].dash,
    fill: styles[n].opacity ? styles[n].color + Math.round(2.55 * (stacked ? 70 : styles[n].opacity)).toString(16).padStart(2, '0') : undefined,
    points: { show: false },
  }));
  const area = node('div');
  body.append(area);
  const key = legend(found, styles, unit);
  body.append(key);
  const axis = { stroke: '#8e929c', grid: { stroke: '#24272d', width: 1 }, ticks: { show: false }, font: '11px DejaVu Sans' };
  const options = {
    width: body.clientWidth - 16,
    height: Math.max(80, body.clientHeight - key.offsetHeight - 8),
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { min: from, max: to }, y: { range: (_, least, largest) => [Math.min(0, least ?? 0), max ?? ((largest || 1) * 1.08)] } },
    axes: [
      { ...axis, size: 28, space: 70, values: '{HH}:{mm}:{ss}' },
      { ...axis, size: 76, values: (_, ticks) => ticks.map((tick) => inWords(tick, unit)) },
    ],
    series: [{}, ...series],
    hooks: custom.thresholdsStyle.mode === 'area' ? { drawClear: [(plot) => shade(plot, thresholds.steps)] } : {},
  };
  new window.uPlot(options, [times, ...order.map((n) => heights[n])], area);
}

/** Colours the ground from each threshold up to the next. */
function shade(plot, steps) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  steps.forEach((each, index) => {
    const low = plot.valToPos(each.value ?? 0, 'y', true);
    const high = index + 1 < steps.length ? plot.valToPos(steps[index + 1].value, 'y', true) : bbox.top;
    ctx.fillStyle = `${COLORS[each.color]}14`;
    ctx.fillRect(bbox.left, Math.min(low, high), bbox.width, Math.abs(low - high));
  });
  ctx.restore();
}

function legend(found, styles, unit) {
  const table = node('table', 'legend');
  const head = table.insertRow();
  for (const title of ['', 'Last', 'Max']) head.append(node('th', '', title));
  found.slice(0, LEGEND_LINES).forEach(({ name, points }, n) => {
    const line = table.insertRow();
    const title = line.insertCell();
    const mark = node('i');
    mark.style.background = styles[n].color;
    title.append(mark, name);
    line.insertCell().textContent = inWords(last(points), unit);
    line.insertCell().textContent = inWords(most(points), unit);
  });
  if (found.length > LEGEND_LINES) table.insertRow().insertCell().textContent = `and ${found.length - LEGEND_LINES} more`;
  return table;
}

function bargauge(body, panel, found) {
  const { unit, thresholds } = panel.fieldConfig.defaults;
  const values = found.map(({ name, points }) => [name, last(points)]).filter(([, value]) => value !== undefined);
  const top = Math.max(...values.map(([, value]) => value), 1e-9);
  const box = node('div', 'bars');
  for (const [name, value] of values) {
    const bar = node('div');
    const fill = node('i');
    fill.style.width = `${(100 * value) / top}%`;
    fill.style.background = colored(value, thresholds.steps);
    bar.append(fill);
    box.append(node('span', '', name), bar, node('b', '', inWords(value, unit)));
  }
  body.append(box);
}

function table(body, panel, found) {
  const hidden = Object.keys(panel.transformations[0].options.excludeByName);
  const columns = [...new Set(found.flatMap(({ labels }) => Object.keys(labels)))].filter((name) => !hidden.includes(name));
  const box = node('table', 'rows');
  const head = box.insertRow();
  for (const name of columns) head.append(node('th', '', name));
  for (const { labels } of found) {
    const line = box.insertRow();
    for (const name of columns) line.insertCell().textContent = labels[name] ?? '';
  }
  body.append(box);
}

/** Paragraphs, blocks of code, links and code in a line: all that our texts use. */
function text(body, panel) {
  const box = node('div', 'text');
  for (const part of panel.options.content.split(/(```\w*\n[\s\S]*?\n```)|\n\n/)) {
    const code = part?.match(/^```\w*\n([\s\S]*?)\n```/);
    if (code) {
      const block = node('pre');
      block.append(node('code', '', code[1]));
      box.append(block);
    } else if (part?.trim()) {
      const paragraph = node('p');
      for (const piece of part.split(/(`[^`]+`|\[[^\]]+\]\([^)]+\))/)) {
        const link = piece.match(/^\[([^\]]+)\]/);
        if (link) paragraph.append(node('a', '', link[1]));
        else paragraph.append(piece.startsWith('`') ? node('code', '', piece.slice(1, -1)) : piece);
      }
      box.append(paragraph);
    }
  }
  body.append(box);
}

const KINDS = { stat, timeseries, bargauge, table, text };

function placed(element, { x, y, w, h }) {
  Object.assign(element.style, {
    left: `${x * CELL.width}px`,
    top: `${y * CELL.height}px`,
    width: `${w * CELL.width - 8}px`,
    height: `${h * CELL.height - 8}px`,
  });
  return element;
}

async function draw(panel) {
  const frame = placed(node('section'), panel.gridPos);
  const body = node('div', 'body');
  frame.append(node('h2', '', panel.title), body);
  document.querySelector('main').append(frame);
  try {
    const found = (await Promise.all((panel.targets ?? []).map(ask))).flat();
    const seen = found.filter(({ points }) => points.some(([, value]) => !Number.isNaN(value)));
    if (panel.targets && !seen.length) {
      wrong.push(panel.title);
      body.append(node('div', 'empty', 'No data'));
    } else {
      KINDS[panel.type](body, panel, found);
    }
  } catch (error) {
    wrong.push(`${panel.title}: ${error.message}`);
  }
}

const board = await (await fetch(`/dashboards/${words.get('board')}.json`)).json();
document.querySelector('h1').textContent = board.title;
for (const { label } of board.templating.list) document.querySelector('nav').append(node('span', '', `${label}: All`));
for (const panel of board.panels.filter(({ type }) => type === 'row')) {
  const row = placed(node('div', 'row', panel.title), panel.gridPos);
  document.querySelector('main').append(row);
}
await Promise.all(board.panels.filter(({ type }) => type !== 'row').map(draw));
const rows = Math.max(...board.panels.map(({ gridPos }) => gridPos.y + gridPos.h));
document.querySelector('main').style.height = `${rows * CELL.height}px`;
window.drawn = { wrong };

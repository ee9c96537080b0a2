// Takes pictures of dashboards as page.js draws them.
// usage: node shoot.mjs PROMETHEUS DASHBOARDS OUT SECONDS STEP RATE NAME...
// Prints, as JSON, what each picture found wrong: a panel without data, a query that was refused, a script's error.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { chromium } from 'playwright-core';

const here = path.dirname(fileURLToPath(import.meta.url));
const [prometheus, dashboards, out, seconds, step, rate, ...names] = process.argv.slice(2);
const TYPES = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.json': 'application/json' };
const FILES = {
  '/': path.join(here, 'index.html'),
  '/uplot.js': path.join(here, 'node_modules/uplot/dist/uPlot.iife.min.js'),
  '/uplot.css': path.join(here, 'node_modules/uplot/dist/uPlot.min.css'),
};
for (const name of ['page.css', 'page.js', 'units.js']) FILES[`/${name}`] = path.join(here, name);
for (const name of names) FILES[`/dashboards/${name}.json`] = path.join(dashboards, `${name}.json`);

// Page and numbers come from one address, so that the browser lets one ask for the other.
const server = http.createServer(async (request, response) => {
  const file = FILES[new URL(request.url, 'http://page').pathname];
  if (file) {
    response.writeHead(200, { 'content-type': TYPES[path.extname(file)] });
    response.end(fs.readFileSync(file));
  } else if (request.url.startsWith('/api/')) {
    const answer = await fetch(prometheus + request.url);
    response.writeHead(answer.status, { 'content-type': 'application/json' });
    response.end(await answer.text());
  } else {
    response.writeHead(404).end();
  }
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const found = {};
try {
  const to = Math.floor(Date.now() / 1000 / step) * step;
  for (const name of names) {
    const page = await browser.newPage({ viewport: { width: 1624, height: 900 } });
    const errors = [];
    page.on('pageerror', (error) => errors.push(String(error)));
    const words = new URLSearchParams({ board: name, from: to - seconds, to, step, rate });
    await page.goto(`http://127.0.0.1:${server.address().port}/?${words}`);
    await page.waitForFunction(() => window.drawn, null, { timeout: 60_000 });
    const { wrong } = await page.evaluate(() => window.drawn);
    found[name] = [...wrong, ...errors];
    await page.screenshot({ path: path.join(out, `${name}.png`), fullPage: true });
    await page.close();
  }
} finally {
  await browser.close();
  server.close();
}
console.log(JSON.stringify(found));

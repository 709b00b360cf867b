// Benchmark of the web console in Chromium: from an append to the row on the screen, a tail of 1,000 events per second,
// scrolling, and the first visit. There is no peer. The server runs in this process, with its store in memory.

import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { setTimeout } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { Browser, Page } from 'playwright-core';
import { createEnvelope, type DomainEventEnvelope } from '../src/contracts/index.ts';
import {
  launchBrowser,
  openConsole,
  type ConsoleRig,
  type Visit,
} from '../test/console/console-rig.ts';
import { ours, type Benchmark, type Runner } from './benchmark.ts';

const stream = 'shop.order.v1-core-1';
const tailPerSecond = 1_000;
const appendsPerSecond = 20;
/** What the page may have in its document, however long the list is. */
const rowsInPageMax = 200;
const dist = fileURLToPath(new URL('../console/dist/', import.meta.url));

export const benchmark: Benchmark = {
  name: 'console',
  peers: [],
  url: import.meta.url,
  secondsPerSubject: 60,
  cases: async ({ defer, quick }) => {
    const browser = await launchBrowser();
    defer(() => browser.close());
    const rows = quick ? 2_000 : 100_000;
    const seconds = quick ? 5 : 20;
    const subject = (setup: () => Promise<Runner>) => [{ name: ours, setup }];
    return [
      {
        name: 'an appended event until its row is visible',
        measure: 'latency',
        batch: 50,
        goals: [{ p99MsMax: 500 }],
        subjects: subject(() => visible(browser)),
      },
      {
        name: `time of a frame while ${tailPerSecond} events/s arrive for ${seconds} s`,
        measure: 'latency',
        batch: seconds,
        subjects: subject(() => tail(browser, 'frames')),
      },
      {
        name: `longest task of each second while ${tailPerSecond} events/s arrive for ${seconds} s`,
        measure: 'latency',
        batch: seconds,
        subjects: subject(() => tail(browser, 'longestTasks')),
      },
      {
        name: `time of a frame while ${rows.toLocaleString('en')} rows scroll`,
        measure: 'latency',
        batch: 1,
        subjects: subject(() => scroll(browser, rows)),
      },
      {
        name: `first visit until the overview, ${initialKilobytes()} kB gzip`,
        measure: 'latency',
        batch: 1,
        subjects: subject(() => firstVisit(browser)),
      },
    ];
  },
};

interface Opened {
  readonly rig: ConsoleRig;
  readonly visit: Visit;
  readonly page: Page;
  readonly close: () => Promise<void>;
}

async function open(browser: Browser, path: string, events = 0): Promise<Opened> {
  await using opening = new AsyncDisposableStack();
  const rig = opening.use(await openConsole(browser));
  await append(rig, Math.max(1, events));
  const visit = opening.use(await rig.visit());
  await visit.open(path);
  await visit.page.getByRole('option').first().waitFor();
  await visit.page.getByRole('status').getByText('Live').waitFor();
  const opened = opening.move();
  return { rig, visit, page: visit.page, close: () => opened.disposeAsync() };
}

async function append(rig: ConsoleRig, count: number): Promise<void> {
  for (let left = count; left > 0; left -= 1_000) {
    const events = Array.from({ length: Math.min(1_000, left) }, () => envelope());
    await rig.api.platform.engines.store.append(stream, events);
  }
}

function envelope(): DomainEventEnvelope {
  const aggregate = { bc: 'shop', type: 'order', id: '1' };
  const payload = { amount: 1_250, currency: 'EUR', customer: { id: 'c-7' } };
  const context = { tenant: 'core', aggregate, correlationId: 'flow-1' };
  return createEnvelope({ type: 'order.placed.v1', payload }, context);
}

async function visible(browser: Browser): Promise<Runner> {
  const { rig, page, close } = await open(browser, 'events?live=true');
  const seen = new Map<string, () => void>();
  await page.exposeFunction('millraceSeen', (row: string) => {
    const revision = /@(\d+)/.exec(row)?.[1] ?? '';
    seen.get(revision)?.();
  });
  // Runs in the browser.
  await page.evaluate(`
    new MutationObserver(() => {
      const row = document.querySelector('[role=option]');
      if (row) millraceSeen(row.textContent);
    }).observe(document.querySelector('[role=listbox]'), { childList: true, subtree: true, characterData: true });
  `);
  let revision = 0;
  return {
    async run(n, record) {
      for (let at = 0; at < n; at += 1) {
        revision += 1;
        const shown = Promise.withResolvers<void>();
        seen.set(String(revision), shown.resolve);
        const startedAtMs = performance.now();
        await append(rig, 1);
        await shown.promise;
        record(performance.now() - startedAtMs);
        seen.clear();
      }
    },
    teardown: close,
  };
}

/** Runs in the browser: the times of frames, and the longest task of each second. */
const observe = `
  globalThis.observed = { frames: [], longestTasks: [0] };
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) {
      const tasks = observed.longestTasks;
      tasks[tasks.length - 1] = Math.max(tasks[tasks.length - 1], duration);
    }
  }).observe({ entryTypes: ['longtask'] });
  setInterval(() => observed.longestTasks.push(0), 1_000);
  let last = performance.now();
  const frame = (now) => {
    observed.frames.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
`;

interface Observed {
  readonly frames: readonly number[];
  readonly longestTasks: readonly number[];
}

const reset = 'observed.frames = []; observed.longestTasks = [0];';

async function tail(browser: Browser, what: keyof Observed): Promise<Runner> {
  const { rig, page, close } = await open(browser, 'events?live=true');
  await page.evaluate(observe);
  return {
    async run(seconds, record) {
      await page.evaluate(reset);
      const startedAtMs = performance.now();
      for (let at = 0; at < seconds * appendsPerSecond; at += 1) {
        await append(rig, tailPerSecond / appendsPerSecond);
        const leftMs = startedAtMs + ((at + 1) * 1_000) / appendsPerSecond - performance.now();
        if (leftMs > 0) await setTimeout(leftMs);
      }
      const observed = (await page.evaluate('observed')) as Observed;
      for (const ms of observed[what]) record(ms);
      await checkRows(page);
    },
    teardown: close,
  };
}

async function scroll(browser: Browser, rows: number): Promise<Runner> {
  const { page, close } = await open(browser, 'events', rows);
  await page.evaluate(observe);
  return {
    async run(_n, record) {
      await page.evaluate(reset);
      // Runs in the browser: scrolls to the end of what is loaded until everything is.
      await page.evaluate(`
        new Promise((resolve) => {
          const box = document.querySelector('[role=listbox]');
          const step = () => {
            if (document.body.textContent.includes('that is all')) return resolve();
            box.scrollTop = box.scrollHeight;
            requestAnimationFrame(step);
          };
          step();
        })
      `);
      await checkRows(page);
      // And back to the top, in 200 steps.
      await page.evaluate(`
        new Promise((resolve) => {
          const box = document.querySelector('[role=listbox]');
          const by = box.scrollHeight / 200;
          // The list is at its top already if an earlier round has loaded it.
          box.scrollTop = box.scrollHeight;
          const step = () => {
            box.scrollTop -= by;
            if (box.scrollTop <= 0) resolve();
            else requestAnimationFrame(step);
          };
          step();
        })
      `);
      await checkRows(page);
      const { frames } = await page.evaluate<Observed>('observed');
      for (const ms of frames) record(ms);
    },
    teardown: close,
  };
}

async function checkRows(page: Page): Promise<void> {
  const rows = await page.getByRole('option').count();
  if (rows > rowsInPageMax) throw new Error(`${rows} rows are in the document`);
}

async function firstVisit(browser: Browser): Promise<Runner> {
  const { rig, close } = await open(browser, 'events');
  return {
    async run(n, record) {
      for (let at = 0; at < n; at += 1) {
        const startedAtMs = performance.now();
        await using visit = await rig.visit();
        await visit.page.getByRole('heading', { name: 'Overview' }).waitFor();
        record(performance.now() - startedAtMs);
      }
    },
    teardown: close,
  };
}

/** Everything that the page names: its script, its style, and what they load before the first view. */
function initialKilobytes(): number {
  const html = readFileSync(`${dist}index.html`, 'utf8');
  const names = [...html.matchAll(/(?:href|src)="([^"]+\.(?:css|js))"/g)].map(([, path = '']) =>
    path.slice(path.lastIndexOf('/') + 1),
  );
  const files = readdirSync(dist, { recursive: true, encoding: 'utf8' });
  const sizes = names.map((name) => {
    const file = files.find((each) => each.endsWith(name));
    return file === undefined ? 0 : gzipSync(readFileSync(`${dist}${file}`)).length;
  });
  const bytes = sizes.reduce((sum, size) => sum + size, gzipSync(html).length);
  return Math.round(bytes / 1_000);
}

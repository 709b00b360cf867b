// `npm run screenshots`: every view of the console, light and dark, wide and narrow, into `.millrace/screenshots`.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  launchBrowser,
  openConsole,
  type ConsoleRig,
  type Visit,
} from '../test/console/console-rig.ts';

const folder = fileURLToPath(new URL('../.millrace/screenshots/', import.meta.url));
mkdirSync(folder, { recursive: true });

const views: Readonly<Record<string, string>> = {
  overview: '',
  events: 'events',
  'event-open': 'events?sel=first',
  failures: 'failures',
  'failure-open': 'failures?open',
  stream: 'streams/shop.order.v1-core-7',
  traces: 'traces',
  trace: 'traces/flow-9',
  'trace-node': 'traces/flow-9?only=failures',
  'trace-unknown': 'traces/never',
};

const browser = await launchBrowser();
try {
  await using rig = await openConsole(browser);
  await fill(rig);
  for (const theme of ['light', 'dark'] as const) {
    for (const [size, width, height] of [
      ['wide', 1_440, 900],
      ['narrow', 360, 740],
    ] as const) {
      const visit = await rig.visit({ theme, width, height, name: `ada-${theme}-${size}` });
      for (const [name, path] of Object.entries(views)) {
        await show(visit, path);
        await visit.page.screenshot({ path: join(folder, `${name}-${theme}-${size}.png`) });
      }
      await visit.open();
      await visit.page.keyboard.press('Control+k');
      await visit.page.getByRole('combobox').fill('flow-9');
      await visit.page.getByRole('option', { selected: true }).waitFor();
      await visit.page.screenshot({ path: join(folder, `palette-${theme}-${size}.png`) });
      const guest = await rig.visit({ theme, width, height, scope: undefined });
      await guest.page.goto(guest.url());
      await guest.page.getByLabel('API token or JWT').waitFor();
      await guest.page.screenshot({ path: join(folder, `sign-in-${theme}-${size}.png`) });
      await Promise.all([visit.context.close(), guest.context.close()]);
    }
  }
} finally {
  await browser.close();
}
console.log(`written to ${folder}`);

async function show({ page, open }: Visit, path: string): Promise<void> {
  await open(path.replace(/\?(?:sel=first|open)$/, ''));
  await page.waitForLoadState('networkidle');
  if (path.includes('sel=first')) await page.getByRole('option').first().click();
  if (path.endsWith('?open'))
    await page
      .getByRole('button', { name: /sub:banking:alarm/ })
      .first()
      .click();
  if (path.includes('only='))
    await page
      .getByRole('button', { name: /sub:banking:alarm/ })
      .first()
      .click();
}

/** Fifteen minutes of a shop, and one flow that fails in several places. */
async function fill(rig: ConsoleRig): Promise<void> {
  const types = ['placed', 'paid', 'packed', 'shipped', 'delivered'];
  for (let at = 0; at < 240; at += 1) {
    const id = String(at % 40);
    await rig.append(`order.${types[Math.floor(at / 40) % types.length] ?? 'placed'}.v1`, {
      id,
      correlationId: `checkout-${id}`,
      payload: {
        order: `o-${id}`,
        amount: 1_250 + at,
        currency: 'EUR',
        lines: [{ sku: 'mill-7', quantity: 2 }],
        customer: { name: 'Ada Byron', city: 'London' },
      },
    });
  }
  await rig.api.fail('core', 'flow-9');
}

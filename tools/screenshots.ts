// `npm run screenshots`: every view of the console, light and dark, wide and narrow, into `.millrace/screenshots`; three of
// them into `docs/images` for the README.

import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { until } from '../src/testing/support/server/api-rig.ts';
import {
  launchBrowser,
  openConsole,
  type ConsoleRig,
  type Visit,
} from '../test/console/console-rig.ts';
import { park, parkedShop } from '../test/console/parked-shop.ts';

const folder = fileURLToPath(new URL('../.millrace/screenshots/', import.meta.url));
const images = fileURLToPath(new URL('../docs/images/', import.meta.url));
for (const each of [folder, images]) mkdirSync(each, { recursive: true });

/** The pictures of the README. */
const shown = ['overview-light', 'trace-dark', 'job-open-light'];

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
  'trace-list': 'traces/flow-9?view=list',
  'trace-explain': 'traces/flow-9?view=explain',
  'traces-failed': 'traces?show=failed',
  'event-search': 'events?payload=customer.city%3DLondon&since=1h',
  'event-missing': 'streams/shop.order.v1-core-7?at=99',
  'bulk-discard': 'failures?all=discard',
  parked: 'failures?show=parked',
  'parked-open': 'failures?show=parked&open=PARKED_LETTER',
  subscriptions: 'subscriptions',
  'subscription-open': 'subscriptions?open=sub:banking:alarm:v1',
  projections: 'projections',
  jobs: 'jobs',
  'job-open': 'jobs?open=FAILED_JOB',
  'job-types': 'jobs?show=types',
  'job-none': 'jobs?type=no-such-type',
  'job-workers': 'jobs?show=workers',
  deliveries: 'deliveries',
  'delivery-open': 'deliveries?open=DEAD_MESSAGE',
  destinations: 'deliveries?show=destinations',
  system: 'system',
  tokens: 'tokens',
  audit: 'audit',
};

/** As an operator sees them while payloads are masked. */
const maskedViews: Readonly<Record<string, string>> = {
  'event-masked': 'streams/shop.order.v1-core-7?at=0',
  'failure-masked': 'failures?open',
  'parked-masked': 'failures?show=parked&open=PARKED_LETTER',
};

const browser = await launchBrowser();
try {
  const shop = parkedShop();
  await using rig = await openConsole(browser, { maskPayloads: true }, [shop.module]);
  const ids = await fill(rig, shop);
  const pathOf = (path: string): string =>
    path
      .replace('FAILED_JOB', ids.job)
      .replace('DEAD_MESSAGE', ids.message)
      .replace('PARKED_LETTER', ids.letter);
  for (const theme of ['light', 'dark'] as const) {
    for (const [size, width, height] of [
      ['wide', 1_440, 900],
      ['narrow', 360, 740],
    ] as const) {
      const visit = await rig.visit({ theme, width, height, name: `ada-${theme}-${size}` });
      for (const [name, path] of Object.entries(views)) {
        await show(visit, pathOf(path));
        await visit.page.screenshot({ path: join(folder, `${name}-${theme}-${size}.png`) });
      }
      await visit.page.route(/cursor=/, (request) => request.abort());
      await visit.open('events');
      await visit.page.getByRole('listbox').press('End');
      await visit.page.getByRole('alert').waitFor();
      await visit.page.screenshot({ path: join(folder, `events-cut-${theme}-${size}.png`) });
      await visit.page.unroute(/cursor=/);
      await visit.open('traces/flow-9');
      await visit.page.keyboard.press('?');
      await visit.page.getByRole('dialog').waitFor();
      await visit.page.screenshot({ path: join(folder, `shortcuts-${theme}-${size}.png`) });
      await visit.open('deliveries?show=destinations');
      await visit.page.getByRole('button', { name: 'Send a test' }).first().click();
      await visit.page.getByRole('dialog').waitFor();
      await visit.page.screenshot({ path: join(folder, `send-test-${theme}-${size}.png`) });
      await visit.open();
      await visit.page.keyboard.press('Control+k');
      await visit.page.getByRole('combobox').fill('flow-9');
      await visit.page.getByRole('option', { selected: true }).waitFor();
      await visit.page.screenshot({ path: join(folder, `palette-${theme}-${size}.png`) });
      const guest = await rig.visit({ theme, width, height, scope: undefined });
      await guest.page.goto(guest.url());
      await guest.page.getByLabel('API token or JWT').waitFor();
      await guest.page.screenshot({ path: join(folder, `sign-in-${theme}-${size}.png`) });
      const masked = await rig.visit({ theme, width, height, scope: 'operate' });
      for (const [name, path] of Object.entries(maskedViews)) {
        await show(masked, pathOf(path));
        await masked.page.screenshot({ path: join(folder, `${name}-${theme}-${size}.png`) });
      }
      await Promise.all([visit, guest, masked].map(({ context }) => context.close()));
    }
  }
} finally {
  await browser.close();
}
for (const name of shown) {
  copyFileSync(join(folder, `${name}-wide.png`), join(images, `console-${name}.png`));
}
console.log(`written to ${folder} and ${images}`);

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
async function fill(
  rig: ConsoleRig,
  shop: ReturnType<typeof parkedShop>,
): Promise<{ readonly job: string; readonly message: string; readonly letter: string }> {
  shop.state.isFixed = true;
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
  await until(() => shop.handled['shop.order.v1-core-39']?.length === 6);
  shop.state.isFixed = false;
  for (const [id, events] of [
    ['41', 9],
    ['42', 4],
    ['43', 1],
  ] as const) {
    await park(rig, id, events);
  }
  await rig.api.fail('core', 'flow-9');
  const { failed } = await rig.jobs();
  const { engines, subscriptions, tokens } = rig.api.platform;
  const tasks = await rig.api.platform.tasks();
  for (let at = 0; at < 12; at += 1) {
    await tasks.enqueue({ type: 'email-send', payload: { order: `o-${at}` }, tenant: 'core' });
    const [claimed] = await tasks.claim({
      worker: 'worker-1',
      types: { 'email-send': 1 },
      waitMs: 0,
    });
    if (claimed !== undefined && at < 9) await tasks.complete(claimed.token, { sent: true });
  }
  await subscriptions.pause('sub:banking:accounts:v1');
  await tokens.create({ name: 'shop-frontend', scopes: ['read', 'append'], tenant: 'core' });
  await tokens.create({ name: 'oncall', scopes: ['operate'] });
  await tokens.create({ name: 'old-import', scopes: ['append'] });
  await tokens.revoke('old-import', { by: 'ada' });
  const [dead] = (await engines.outbox?.list({ status: 'DEAD' })) ?? [];
  const [letter] = await engines.subscriptions.deadLetters.list({ parked: true });
  return { job: failed, message: dead?.id ?? '', letter: letter?.id ?? '' };
}

// The console in a real browser.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempDisposableSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { createEnvelope } from '../../src/contracts/index.ts';
import { webhookDestination } from '../../src/destinations/webhook/index.ts';
import { defineModule } from '../../src/platform/index.ts';
import { startApi } from '../../src/server/api/start-api.ts';
import { reservePort } from '../../src/testing/servers/reserve-port.ts';
import { Terminal } from '../../src/subscriptions/index.ts';
import { until } from '../../src/testing/support/server/api-rig.ts';
import { launchBrowser, openConsole, serveUnder } from './console-rig.ts';

describe('the console in Chromium', () => {
  let browser: Browser;
  before(async () => {
    browser = await launchBrowser();
  });
  after(() => browser.close());

  test('the root leads to the sign-in page, and a token opens the overview', async () => {
    await using rig = await openConsole(browser);
    await using visit = await rig.visit({ scope: undefined });
    const { page } = visit;
    await page.goto(`${rig.api.server.url}/`);
    assert.equal(page.url(), visit.url());
    await page.getByLabel('API token or JWT').fill('mr_wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('unknown or revoked token').waitFor();
    // The browser itself reports the status of the failed request.
    assert.equal(visit.errors.splice(0).length, 1);
    const secret = await rig.api.token('admin');
    await page.getByLabel('API token or JWT').fill(secret);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const stored = await page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }])',
    );
    assert.equal(
      `${String(stored)}${await page.content()}${page.url()}`.includes(secret.slice(-20)),
      false,
    );
    assert.equal(await page.evaluate('document.cookie'), '');
    await page.getByRole('button', { name: 'Account' }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByLabel('API token or JWT').waitFor();
  });

  test('a link disappears from the address and does not work twice', async () => {
    await using rig = await openConsole(browser);
    const { tokens } = rig.api.platform;
    await tokens.create({ name: 'admin', scopes: ['admin'] });
    const { code } = await tokens.createLink('admin');
    await using first = await rig.visit({ scope: undefined });
    await first.page.goto(`${first.url()}#link=${code}`);
    await first.page.getByRole('heading', { name: 'Overview' }).waitFor();
    assert.equal(first.page.url(), first.url());
    await using second = await rig.visit({ scope: undefined });
    await second.page.goto(`${second.url()}#link=${code}`);
    await second.page.getByRole('alert').getByText('was used').waitFor();
    assert.equal(second.errors.splice(0).length, 1);
    await tokens.revoke('admin');
    await first.page.getByRole('alert').getByText('The session has ended').waitFor();
    // The page may send one more request before the live connection reports the end; the browser logs the refusal.
    assert.deepEqual(
      first.errors.splice(0).filter((error) => !error.includes('401 (Unauthorized)')),
      [],
    );
  });

  test('the overview shows failures and engines, and changes without a reload', async () => {
    await using rig = await openConsole(browser);
    await using visit = await rig.visit();
    const { page } = visit;
    await page.getByText('Nothing fails').waitFor();
    await page.getByRole('cell', { name: 'memory:' }).first().waitFor();
    await rig.api.fail('core');
    await page.getByText('1 dead letter').waitFor();
    await page.getByText('1 message could not be delivered').waitFor();
    await page.route('**/admin/overview', async (route) => {
      // The browser adds what the server wants to know about the page after this.
      const headers = { ...route.request().headers(), origin: rig.api.server.url };
      const response = await route.fetch({ headers });
      await route.fulfill({ json: { ...(await response.json()), series: [] } });
    });
    await page.reload();
    await page.getByText('waiting for a decision').first().waitFor();
    await page.unrouteAll({ behavior: 'wait' });
  });

  test('an event is found by its type, opened, and followed to its trace, with the keyboard alone', async () => {
    await using rig = await openConsole(browser);
    const payload = {
      html: '<img src=x onerror=alert(1)>',
      deep: { list: [1, { two: null }] },
      text: 'שלום 🌊',
    };
    await rig.append('order.placed.v1', { payload });
    await rig.append('order.paid.v1', { id: '2', correlationId: 'flow-2' });
    await using visit = await rig.visit();
    const { page } = visit;
    await page.keyboard.press('g');
    await page.keyboard.press('e');
    await page.getByRole('option', { name: /order\.paid\.v1/ }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('order.placed');
    await page.keyboard.press('Enter');
    await page.getByRole('option', { name: /order\.paid\.v1/ }).waitFor({ state: 'detached' });
    assert.match(page.url(), /type=order\.placed/);
    // While the list loads, there is no row to go to.
    await page.getByRole('option', { name: /order\.placed\.v1/ }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('j');
    const sheet = page.getByRole('dialog');
    await sheet.getByText('"<img src=x onerror=alert(1)>"').waitFor();
    await sheet.getByText('"שלום 🌊"').waitFor();
    assert.equal(await sheet.locator('img').count(), 0);
    await sheet.getByRole('link', { name: 'What caused this' }).press('Enter');
    await page.getByRole('heading', { name: 'Trace' }).waitFor();
    assert.match(page.url(), /\/console\/traces\/flow-1\?view=explain&node=event/);
    await page.getByText('No command is recorded').waitFor();
    await page.getByText('Nothing waits').waitFor();
    await page.keyboard.press('e');
    await page.getByRole('button', { name: /order\.placed\.v1/ }).waitFor();

    await visit.open('events?payload=deep.list%3D1&since=1h');
    await page.getByRole('option', { name: /order\.placed\.v1/ }).waitFor();
    await page.getByText('Searched 2 events back to').waitFor();
    assert.equal(await page.getByRole('option').count(), 1);
    await page.getByLabel('Payload').fill('deep.list=2');
    await page.keyboard.press('Enter');
    await page.getByText('Nothing matches the filter').waitFor();
    await page.getByLabel('Payload').fill('deep.list');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('is not of the form path=value').waitFor();
    assert.equal(await page.getByLabel('Payload').getAttribute('aria-invalid'), 'true');
    assert.equal(visit.errors.splice(0).length, 1);
  });

  test('large flows and payloads are folded, and the page stays small', async () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'millrace-large-'));
    const file = join(folder.path, 'events.db');
    await using rig = await openConsole(browser, {}, [], { store: `sqlite:${file}` });
    const { store } = rig.api.platform.engines;
    const keys = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`<b>k${n}`, n]));
    const payload = { long: `שלום ${'🌊'.repeat(200_000)}`, deep: 'here', keys };
    await rig.append('order.placed.v1', { payload, correlationId: 'large' });
    const [first] = await store.readAll({ limit: 1 }).toArray();
    // The store refuses this depth, but an older one may have it.
    using database = new DatabaseSync(file, { timeout: 10_000 });
    const deep = `${'[1,'.repeat(20_000)}[]${']'.repeat(20_000)}`;
    const update = database.prepare('UPDATE events SET payload = replace(payload, ?, ?)');
    assert.equal(update.run('"here"', deep).changes, 1);
    const context = {
      tenant: 'core',
      aggregate: { bc: 'shop', type: 'order', id: '2' },
      correlationId: 'large',
      causationId: first?.eventId ?? '',
    };
    const events = Array.from({ length: 999 }, (_, amount) =>
      createEnvelope({ type: 'order.changed.v1', payload: { amount } }, context),
    );
    await store.append('shop.order.v1-core-2', events);
    await using visit = await rig.visit({ path: 'traces/large' });
    const { page } = visit;
    await page
      .getByRole('button', { name: /order\.changed\.v1/ })
      .first()
      .waitFor();
    assert.ok((await page.locator('#main li').count()) <= 200);
    await page.getByRole('button', { name: 'Fold order.placed.v1' }).click();
    await page.getByText('+999').waitFor();
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByText(/^999 events/).waitFor();
    await visit.open('streams/shop.order.v1-core-1?at=0');
    const sheet = page.getByRole('dialog');
    await sheet.getByText('10000 keys').click();
    await sheet.getByText('"<b>k99"').waitFor();
    await sheet.getByText('show 100 more of 9900').waitFor();
    await sheet.getByText(/show more of \d+ characters/).waitFor();
    assert.equal(await sheet.locator('b').count(), 0);
    for (let level = 0; level < 5; level += 1) {
      await sheet.getByRole('button', { name: /\[ 2 items \]/ }).click();
    }
    await visit.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await sheet.getByRole('button', { name: 'Copy payload' }).click();
    await sheet.getByRole('button', { name: 'Copied' }).waitFor();
    assert.ok(Number(await page.evaluate('document.body.textContent.length')) < 100_000);
  });

  test('new events are announced, and shown at once while live is on', async () => {
    await using rig = await openConsole(browser);
    await rig.append('order.placed.v1');
    await using visit = await rig.visit({ path: 'events' });
    const { page } = visit;
    const rows = page.getByRole('option');
    await rows.first().waitFor();
    await page.getByText('Live', { exact: true }).first().waitFor();
    // The subscription of the page is open when the first event after it arrives.
    await page.getByRole('status').getByText('Live').waitFor();
    await rig.append('order.paid.v1');
    await page.getByRole('button', { name: '1 new' }).click();
    await page.getByRole('option', { name: /order\.paid\.v1/ }).waitFor();
    await page.getByRole('button', { name: 'Live' }).click();
    await rig.append('order.shipped.v1');
    await page.getByRole('option', { name: /order\.shipped\.v1/ }).waitFor();
    assert.equal(await rows.count(), 3);

    await visit.open('traces');
    const flows = page.getByRole('main').getByRole('link', { name: /flow-\d/ });
    await page.getByRole('link', { name: /flow-1/ }).waitFor();
    await page.getByRole('status').getByText('Live').waitFor();
    await rig.append('order.placed.v1', { id: '2', correlationId: 'flow-2' });
    await rig.append('order.paid.v1', { id: '2', correlationId: 'flow-2' });
    await page.getByRole('button', { name: '1 new' }).waitFor();
    assert.equal(await flows.count(), 1);
    await page.getByRole('button', { name: '1 new' }).click();
    await page.getByRole('link', { name: /flow-2/ }).waitFor();
    assert.equal(await flows.count(), 2);
  });

  test('while the server restarts nothing can be changed; then the page catches up, and shows no event twice', async () => {
    await using reserved = await reservePort();
    const { host, port } = reserved;
    await using rig = await openConsole(browser, { host, port });
    await rig.api.fail('core');
    await using visit = await rig.visit({ path: null });
    const { page } = visit;
    const inbox = await visit.context.newPage();
    await inbox.goto(visit.url('failures'));
    await inbox.getByRole('button', { name: /partner:x/ }).click();
    const sheet = inbox.getByRole('dialog');
    const replay = sheet.getByRole('button', { name: 'Replay 1', exact: true });
    await inbox.locator('[role=status]', { hasText: 'Live' }).waitFor({ state: 'attached' });
    assert.equal(await replay.isEnabled(), true);
    const jobs = await visit.context.newPage();
    const preloaded = jobs.waitForResponse(/\/audit-[^/]*\.js/);
    await jobs.goto(visit.url('jobs?show=types'));
    const pause = jobs.getByRole('button', { name: 'Pause' }).first();
    await pause.waitFor();
    await visit.open('events?live=true');
    await page.getByRole('status').getByText('Live').waitFor();
    await page.getByRole('option').first().waitFor();
    const shown = await page.getByRole('option').count();
    await rig.append('order.paid.v1');
    await page.getByRole('option', { name: /order\.paid\.v1/ }).waitFor();
    await (await preloaded).finished();
    await rig.api.server[Symbol.asyncDispose]();
    await page.getByRole('alert').getByText('No connection since').waitFor();
    const buttons = [
      replay,
      sheet.getByRole('button', { name: 'Replay this one' }),
      sheet.getByRole('button', { name: 'Resolve' }),
      pause,
    ];
    for (const button of buttons) {
      await button.and(button.page().locator(':disabled')).waitFor();
      assert.match((await button.getAttribute('title')) ?? '', /^No connection to the server/);
    }
    // A view that was not opened before.
    await jobs.getByRole('link', { name: 'Audit' }).click();
    await jobs.getByRole('heading', { name: 'Audit' }).waitFor();
    await jobs.goBack();
    await rig.append('order.packed.v1');
    await using again = await startApi(rig.api.platform, { host, port });
    await page.getByRole('option', { name: /order\.packed\.v1/ }).waitFor();
    await page.getByRole('alert').waitFor({ state: 'detached' });
    await rig.append('order.shipped.v1');
    await page.getByRole('option', { name: /order\.shipped\.v1/ }).waitFor();
    assert.equal(await page.getByRole('option').count(), shown + 3);
    assert.equal(again.port, port);
    for (const button of buttons) {
      await button.and(button.page().locator(':enabled')).waitFor();
      assert.equal(await button.getAttribute('title'), null);
    }
    // The browser reports each attempt to connect, and a request on a connection that is being closed.
    const failed = visit.errors.splice(0);
    assert.deepEqual(
      failed.filter(
        (error) => !/ERR_(?:CONNECTION_(?:REFUSED|RESET|CLOSED)|EMPTY_RESPONSE)/.test(error),
      ),
      [],
    );
  });

  test('any id pasted into the palette leads to its page', async () => {
    await using rig = await openConsole(browser);
    await rig.api.fail('core', 'flow-9');
    const { failed } = await rig.jobs();
    const { engines, tokens } = rig.api.platform;
    const [letter] = await engines.subscriptions.deadLetters.list({});
    const [message] = (await engines.outbox?.list({ status: 'DEAD' })) ?? [];
    const [event] = await engines.store.readAll({ limit: 1 }).toArray();
    const [saga] = await engines.sagas.list({ status: 'parked' });
    const { token } = await tokens.create({ name: 'shop', scopes: ['read'] });
    const bus = await engines.bus();
    const definition = { group: 'mails', subject: 'gbe.notify.topic.a' };
    await using consumer = await bus.consume(definition, () =>
      Promise.reject(new Terminal('no route')),
    );
    await bus.publish({ subject: definition.subject, payload: 1 });
    await until(async () => (await bus.deadLetters('mails')).length === 1);
    await consumer.stop();
    const [lost] = await bus.deadLetters('mails');
    await using visit = await rig.visit();
    const { page } = visit;
    const cases = [
      ['flow-9', /\/traces\/flow-9$/, 'Trace'],
      [letter?.id, /\/traces\/flow-9$/, 'Trace'],
      [message?.id, /\/deliveries\?open=/, 'Payload'],
      [message?.cause?.fingerprint, /\/failures\?.*group=[0-9a-f]{12}/, 'Replay 1'],
      [event?.stream, /\/streams\/banking\.account\.v1-core-/, 'Stream'],
      [event?.eventId, /\/streams\/banking\.account\.v1-core-.*\?at=0$/, 'Correlation'],
      [saga?.key, /\/traces\/flow-9\?view=explain&node=saga/, 'is parked'],
      [failed, /\/jobs\?open=email-send\./, 'no such mailbox'],
      ['sub:banking:alarm:v1', /\/subscriptions\?open=/, 'Waiting events'],
      [token.id, /\/tokens\?open=/, 'Revoke shop'],
      [`mails/${lost?.sequence ?? ''}`, /\/failures\?.*group=[0-9a-f]{12}/, 'no route'],
    ] as const;
    for (const [id, url, text] of cases) {
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox').fill(id ?? '');
      await page.getByRole('option', { selected: true }).waitFor();
      await page.keyboard.press('Enter');
      await page.waitForURL(url);
      await page.getByText(text).first().waitFor();
      await page.keyboard.press('Escape');
    }
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').fill('no-such-id');
    await page.getByText('Nothing has the id “no-such-id”').waitFor();
  });

  test('a trace shows what failed, and an unknown one says what was looked for', async () => {
    await using rig = await openConsole(browser);
    await rig.api.fail('core', 'flow-9');
    await using visit = await rig.visit({ path: 'traces/flow-9' });
    const { page } = visit;
    await page.getByRole('button', { name: 'Only failures' }).click();
    await page
      .getByRole('button', { name: /sub:banking:alarm:v1/ })
      .first()
      .click();
    await page.getByRole('dialog').getByText('out of order').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Explain' }).click();
    await page.getByText('waits for an operator: replay or discard it').waitFor();
    await visit.open('traces?show=failed');
    await page.getByRole('link', { name: /flow-9/ }).waitFor();
    await rig.api.fail('acme', 'flow-10');
    await page.getByRole('button', { name: '1 new' }).waitFor();
    assert.equal(await page.getByRole('link', { name: /flow-10/ }).count(), 0);
    await page.getByRole('button', { name: '1 new' }).click();
    await page.getByRole('link', { name: /flow-10/ }).waitFor();
    await visit.open('traces/never');
    await page.getByText("unknown flow 'never'").waitFor();
    assert.equal(visit.errors.splice(0).length, 1);
  });

  test('a flow that becomes slow is announced among the slow ones, and a quick one is not', async () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'millrace-slow-'));
    const file = join(folder.path, 'events.db');
    await using rig = await openConsole(browser, {}, [], { store: `sqlite:${file}` });
    await rig.append('order.placed.v1', { correlationId: 'slow' });
    using database = new DatabaseSync(file, { timeout: 10_000 });
    const update = database.prepare('UPDATE events SET recorded_at_ms = recorded_at_ms - 60000');
    assert.equal(update.run().changes, 1);
    await using visit = await rig.visit({ path: 'traces?show=slow' });
    const { page } = visit;
    await page.getByText('No flow of these events').waitFor();
    const aggregate = { bc: 'shop', type: 'order', id: '1' };
    const events = ['quick', 'slow'].map((correlationId) =>
      createEnvelope(
        { type: 'order.paid.v1', payload: {} },
        { tenant: 'core', aggregate, correlationId },
      ),
    );
    await rig.api.platform.engines.store.append('shop.order.v1-core-1', events);
    await page.getByRole('button', { name: '1 new' }).click();
    await page.getByRole('link', { name: /slow.*1 min/ }).waitFor();
    assert.equal(await page.getByRole('link', { name: /quick/ }).count(), 0);
  });

  test('what the scopes do not allow is hidden, and refused when it is forced', async () => {
    await using rig = await openConsole(browser);
    await using visit = await rig.visit({ scope: 'read', path: 'tokens' });
    const { page } = visit;
    await page.getByText('This needs the scope “admin”').waitFor();
    assert.equal(visit.errors.splice(0).length, 1);
  });

  test('from the overview to the cause of a failure to replayed, in three clicks', async () => {
    await using rig = await openConsole(browser);
    await rig.api.fail('core', 'flow-9');
    await using visit = await rig.visit();
    const { page } = visit;
    await page.getByRole('link', { name: 'Show' }).first().click();
    await page.getByText('3 failures, 3 causes').waitFor();
    rig.api.faults.isFixed = true;
    await page.getByRole('button', { name: /sub:banking:alarm:v1/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Replay 1' }).click();
    await page.getByText('Replay requested for 1 of 1').waitFor();
    await page.getByText('2 failures, 2 causes').waitFor();
    await visit.open('failures?source=job');
    await page.getByText('Nothing matches the filter').waitFor();
    await page.getByRole('button', { name: 'Clear the filter' }).click();
    await page.getByRole('button', { name: 'All that match…' }).click();
    await page.getByText('2 failures as of').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Retry now' }).click();
    await page.getByText('None of them is tried again by itself').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click();
    await page.getByRole('button', { name: 'Replay 2' }).click();
    await page.getByText('Replay requested for 2 of 2').waitFor();
    await page.getByRole('list', { name: 'Outcomes' }).getByText('changed').first().waitFor();
    // The address is a link to the action.
    await page.reload();
    await page.getByText('Replay requested for 2 of 2').waitFor();
    await page.keyboard.press('Escape');
    await page.getByText('Nothing has failed').waitFor();
    await visit.go('jobs?type=millrace-bulk');
    await page
      .getByRole('button', { name: /^millrace-bulk/ })
      .first()
      .click();
    await page.getByRole('dialog').getByText('Payload').waitFor();
    assert.equal(await page.getByRole('button', { name: /Retry|Run again/ }).count(), 0);
    const { outbox } = rig.api.platform.engines;
    await until(async () => (await outbox?.counts())?.SENT === 3);
  });

  test('from the red message about a failing webhook to its cause to replayed, in three clicks', async () => {
    const received: (string | undefined)[] = [];
    let status = 400;
    const receiver = createServer((request, response) => {
      received.push(String(request.headers['webhook-id']));
      response.writeHead(status).end('no such account');
    });
    receiver.listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    const { port } = receiver.address() as AddressInfo;
    await using webhook = webhookDestination({
      endpoint: {
        id: 'partner',
        url: `http://127.0.0.1:${port}/hook`,
        secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
      },
      allowHttp: true,
      allowAddresses: ['127.0.0.1/32'],
    });
    const hooks = defineModule({
      name: 'hooks',
      outbox: [
        {
          name: 'sub:shop:hooks:v1',
          filter: { category: 'shop.order.v1' },
          mapper: {
            map: ({ type, payload }) => ({
              integrationType: 'webhook:partner',
              eventType: type,
              payload: payload as Record<string, unknown>,
            }),
          },
        },
      ],
      destinations: { webhook },
    });
    try {
      await using rig = await openConsole(browser, {}, [hooks]);
      await using visit = await rig.visit({ path: 'events' });
      const { page } = visit;
      await page.getByRole('status').getByText('Live').waitFor();
      await rig.append('order.placed.v1');
      const message = page.getByRole('alert').filter({ hasText: 'webhook:partner' });
      await message.getByRole('link', { name: 'Show the cause' }).click();
      const sheet = page.getByRole('dialog');
      await sheet.getByText('Attempts').first().click();
      await sheet.getByText('webhook-signature: •••').waitFor();
      status = 204;
      await sheet.getByRole('button', { name: 'Replay 1' }).click();
      await page.getByText('Replay requested for 1 of 1').waitFor();
      await page.getByText('Nothing has failed').waitFor();
      await until(() => received.length === 2);
      assert.equal(received[1], received[0]);
    } finally {
      receiver.closeAllConnections();
      await new Promise((resolve) => receiver.close(resolve));
    }
  });

  test('a cause is noted and resolved, and comes back when it happens again', async () => {
    await using rig = await openConsole(browser);
    await rig.api.fail('core');
    await using visit = await rig.visit({ path: 'failures' });
    const { page } = visit;
    await page.getByRole('button', { name: /partner:x/ }).click();
    const sheet = page.getByRole('dialog');
    await sheet.getByText('stack').click();
    await sheet.getByText(/at failOn/).waitFor();
    await sheet.getByLabel('Note').fill('asked Eve');
    await sheet.getByRole('button', { name: 'Save note' }).click();
    await page.getByRole('button', { name: /asked Eve/ }).waitFor();
    await sheet.getByRole('button', { name: 'Resolve' }).click();
    await page.getByRole('button', { name: /partner:x/ }).waitFor({ state: 'detached' });
    await visit.open('failures');
    await page.getByText('2 causes').waitFor();
    await rig.api.platform.engines.outbox?.replay({});
    await page.getByRole('button', { name: /asked Eve/ }).click();
    await page.getByText('and happened again').waitFor();
  });

  test('works under the base path of a proxy', async () => {
    await using rig = await openConsole(browser);
    await rig.append('order.placed.v1');
    await using proxy = await serveUnder('/ops', rig.api.server.url);
    await rig.api.platform.tokens.create({ name: 'admin', scopes: ['admin'] });
    const { code } = await rig.api.platform.tokens.createLink('admin');
    await using visit = await rig.visit({ scope: undefined });
    const { page } = visit;
    await page.goto(`${proxy.url}/console#link=${code}`);
    await page.getByRole('status').getByText('Live').waitFor();
    await page.getByRole('link', { name: 'Traces' }).click();
    await page.getByRole('link', { name: /flow-1/ }).click();
    await page.getByRole('button', { name: /order\.placed\.v1/ }).waitFor();
    assert.equal(page.url(), `${proxy.url}/console/traces/flow-1`);
    await page.reload();
    await page.getByRole('button', { name: /order\.placed\.v1/ }).waitFor();
  });

  test('fits a screen of 360 pixels', async () => {
    await using rig = await openConsole(browser);
    await rig.api.fail('core', 'flow-9');
    await using visit = await rig.visit({ width: 360, height: 740, path: null });
    const { page } = visit;
    for (const [path, text] of [
      ['', 'Needs attention'],
      ['events', 'account.deposited.v1'],
      ['events?since=1h', 'account.deposited.v1'],
      ['traces', 'flow-9'],
      ['traces?show=failed', 'flow-9'],
      ['traces/flow-9', 'sub:banking:alarm:v1'],
      ['traces/flow-9?view=list', 'sub:banking:alarm:v1'],
      ['traces/flow-9?view=explain', 'What waits'],
      ['failures?all=discard', 'Reason, stored with each of them'],
      ['failures', 'out of order'],
    ] as const) {
      await visit.go(path);
      await page.getByText(text).first().waitFor();
      const width = await page.evaluate('document.documentElement.scrollWidth');
      assert.equal(width, 360, path);
      const isScrolled = await page.evaluate(
        "[...document.querySelectorAll('#main [aria-pressed]')].some(({ parentElement: bar }) => bar.scrollWidth > bar.clientWidth)",
      );
      assert.equal(isScrolled, false, path);
    }
    await page.getByRole('button', { name: 'Open the navigation' }).click();
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });

  for (const theme of ['light', 'dark'] as const) {
    test(`axe finds nothing serious in ${theme} views, empty and filled`, async () => {
      await using rig = await openConsole(browser);
      await using visit = await rig.visit({ theme, bypassCsp: true, path: null });
      const { page } = visit;
      const check = async (path: string, ready: string): Promise<void> => {
        await visit.go(path);
        await page.getByText(ready).first().waitFor();
        assert.deepEqual(await visit.axe(), [], `${theme} ${path}`);
      };
      await check('', 'Nothing fails');
      await check('events', 'No events yet');
      await rig.append('order.placed.v1', { correlationId: 'flow-1' });
      await rig.api.fail('core', 'flow-9');
      await check('', '1 dead letter');
      await check('events', 'order.placed.v1');
      await check('failures', 'out of order');
      await page.getByRole('button', { name: /partner:x/ }).click();
      const sheet = page.getByRole('dialog');
      for (const part of [/stack$/, 'Attempts', 'Payload']) await sheet.getByText(part).click();
      await sheet.getByText(/at failOn/).waitFor();
      await sheet.getByText('"amount"').waitFor();
      assert.deepEqual(await visit.axe(), [], `${theme} open failure`);
      await check('failures?all=discard', 'Reason, stored with each of them');
      await check('traces', 'flow-9');
      await check('traces/flow-9', 'sub:banking:alarm:v1');
      await check('traces/flow-9?view=explain', 'What waits');
      await check('events?payload=amount%3D1', 'Searched');
      await check('traces?show=failed', 'dead letter');
      await check('streams/shop.order.v1-core-1?at=0', 'Correlation');
    });
  }
});

// A real browser on a real server: a test fails on any error in the browser's console, unhandled rejection or violation of
// the content security policy.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { createRequire } from 'node:module';
import { connect, type AddressInfo } from 'node:net';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { createEnvelope } from '../../src/contracts/index.ts';
import type { EngineUrls, PlatformModule } from '../../src/platform/index.ts';
import type { TokenScope } from '../../src/platform/tokens/scopes.ts';
import type { ApiOptions } from '../../src/server/api/start-api.ts';
import { openApi, type Api } from '../../src/testing/support/server/api-rig.ts';

const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-dev-shm-usage',
];

/** Installed by `tools/setup.mjs --servers`. */
export async function launchBrowser(): Promise<Browser> {
  const paths = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
  const executablePath = paths.find((path) => existsSync(path));
  if (executablePath === undefined)
    throw new Error('Chromium is not installed: node tools/setup.mjs --servers');
  return chromium.launch({ executablePath, args: flags });
}

export interface Visit extends AsyncDisposable {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors so far; a test that expects some removes them. */
  readonly errors: string[];
  /** Opens a path below `/console/`, and waits for the page. */
  readonly open: (path?: string) => Promise<void>;
  /** As `open`, but as a link does it: the page is not loaded again. */
  readonly go: (path: string) => Promise<void>;
  /** The URL of a path below `/console/`. */
  url(path?: string): string;
  /** Serious findings of axe. */
  axe(): Promise<readonly string[]>;
}

interface VisitOptions {
  readonly theme?: 'dark' | 'light';
  readonly width?: number;
  readonly height?: number;
  /** The browser blocks axe otherwise. */
  readonly bypassCsp?: boolean;
  /** Undefined: not signed in. */
  readonly scope?: TokenScope | undefined;
  readonly tenant?: string;
  /** The name of the token. Default: a new one. */
  readonly name?: string;
  /** The first page, below `/console/`; null: the test opens it. Default: the overview. */
  readonly path?: string | null;
}

export interface ConsoleRig extends AsyncDisposable {
  readonly api: Api;
  visit(options?: VisitOptions): Promise<Visit>;
  append(type: string, options?: AppendOptions): Promise<void>;
  /** A message that is due in the year 2100. Returns its id. */
  waitingMessage(sourceEventId?: string): Promise<string>;
  /** One job that failed in its second step, one that runs and one that is queued. */
  jobs(): Promise<{ readonly failed: string; readonly running: string; readonly queued: string }>;
}

interface AppendOptions {
  readonly id?: string;
  readonly payload?: unknown;
  readonly correlationId?: string;
}

/** Runs in the browser. */
const reportViolations = `document.addEventListener('securitypolicyviolation', (event) =>
  console.error('violation of ' + event.violatedDirective + ' by ' + event.blockedURI));`;

/** Resolves when no transition runs: after two frames they have started. */
const whenStill = `new Promise((frame) => requestAnimationFrame(() => requestAnimationFrame(frame))).then(() =>
  Promise.allSettled(document.getAnimations()
    .filter((each) => each.effect.getTiming().iterations !== Infinity)
    .map((each) => each.finished)))`;
const axeSource = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

export async function openConsole(
  browser: Browser,
  address: Pick<ApiOptions, 'host' | 'maskPayloads' | 'port'> = {},
  modules: readonly PlatformModule[] = [],
  engines?: EngineUrls,
): Promise<ConsoleRig> {
  const api = await openApi(address, engines, modules);
  return {
    api,
    async append(type, { id = '1', payload = { amount: 1 }, correlationId = 'flow-1' } = {}) {
      const aggregate = { bc: 'shop', type: 'order', id };
      const envelope = createEnvelope(
        { type, payload },
        { tenant: 'core', aggregate, correlationId },
      );
      await api.platform.engines.store.append(`shop.order.v1-core-${id}`, [envelope]);
    },
    async waitingMessage(sourceEventId = 'waiting') {
      const message = {
        sourceStreamId: 'banking.account.v1-core-a1',
        sourceEventId,
        integrationType: 'partner:x',
        eventType: 'account.opened.v1',
        payload: { amount: 1 },
        tenantId: 'core',
        dueAt: new Date('2100-01-01T00:00:00.000Z'),
      };
      const { outbox } = api.platform.engines;
      assert.ok(outbox !== undefined);
      return (await outbox.enqueue(message)).id;
    },
    async jobs() {
      const tasks = await api.platform.tasks();
      const enqueue = async (type: string): Promise<string> => {
        const payload = { order: 'o-7', to: 'ada@example.com' };
        const { id } = await tasks.enqueue({ type, payload, tenant: 'core', correlationId: 'f-1' });
        return id;
      };
      const claim = async (type: string) => {
        const [claimed] = await tasks.claim({
          worker: 'worker-1',
          types: { [type]: 1 },
          waitMs: 0,
        });
        assert.ok(claimed !== undefined);
        return claimed.token;
      };
      const failed = await enqueue('email-send');
      const first = await claim('email-send');
      await tasks.startStep(first, { name: 'render' });
      await tasks.finishStep(first, { name: 'render', result: { bytes: 512 } });
      await tasks.startStep(first, { name: 'send' });
      const failure = { message: 'no such mailbox', isTerminal: true };
      await tasks.failStep(first, { name: 'send', failure, retries: 0 });
      await tasks.fail(first, failure);
      const running = await enqueue('report-gen');
      const second = await claim('report-gen');
      await tasks.startStep(second, { name: 'collect' });
      await tasks.progress(second, { percent: 40, message: '4 of 10 months' });
      const queued = await enqueue('report-gen');
      return { failed, running, queued };
    },
    async visit(options = {}) {
      return visit(browser, api, options);
    },
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  };
}

async function visit(browser: Browser, api: Api, options: VisitOptions): Promise<Visit> {
  const { theme = 'light', width = 1_280, height = 800, bypassCsp = false } = options;
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: theme,
    bypassCSP: bypassCsp,
    reducedMotion: 'reduce',
  });
  const errors: string[] = [];
  const page = await context.newPage();
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(`${message.text()} ${message.location().url}`);
  });
  page.on('pageerror', (error) => errors.push(String(error)));
  await page.addInitScript({ content: reportViolations });
  const url = (path = ''): string => `${api.server.url}/console/${path}`;
  const open = async (path?: string): Promise<void> => {
    await page.goto(url(path));
    await page.locator('#main').waitFor();
  };
  const scope = 'scope' in options ? options.scope : 'admin';
  if (scope !== undefined) {
    const { name = `browser-${performance.now().toString(36).replace('.', '')}` } = options;
    const { tokens } = api.platform;
    await tokens.create({ name, scopes: [scope], tenant: options.tenant });
    const { code } = await tokens.createLink(name);
    // As the sign-in page does it, but without loading that page.
    const signedIn = await context.request.post(`${api.server.url}/console/session`, {
      data: { link: code },
      headers: { 'x-millrace-app': 'console', origin: api.server.url },
    });
    assert.ok(signedIn.ok(), await signedIn.text());
    if (options.path !== null) await open(options.path);
  }
  return {
    page,
    context,
    errors,
    url,
    open,
    async go(path) {
      if (!page.url().startsWith(url())) return open(path);
      const push = (to: string) =>
        page.evaluate(`history.pushState(null, '', ${JSON.stringify(to)})`);
      // No text of the view before may be taken for one of the next.
      await push(url('no/such/page'));
      await page.getByText('There is no such page').waitFor();
      await push(url(path));
    },
    async axe() {
      // While a dialog opens, axe does not see yet that it is modal.
      await page.evaluate(whenStill);
      if (!(await page.evaluate("'axe' in globalThis"))) {
        await page.evaluate(await readFile(axeSource, 'utf8'));
      }
      return page.evaluate(async () => {
        const { axe } = globalThis as unknown as { axe: Axe };
        const { violations } = await axe.run({ resultTypes: ['violations'] });
        return violations
          .filter(({ impact }) => impact === 'serious' || impact === 'critical')
          .flatMap(({ id, nodes }) =>
            nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
          );
      });
    },
    async [Symbol.asyncDispose]() {
      // A handler of a test may still be waiting for an answer, which is gone with the context.
      await page.unrouteAll({ behavior: 'ignoreErrors' });
      await context.close();
      assert.deepEqual(errors, []);
    },
  };
}

/** A reverse proxy that serves the target under a base path. */
export async function serveUnder(
  prefix: string,
  target: string,
): Promise<{ readonly url: string } & AsyncDisposable> {
  const { host } = new URL(target);
  const [hostname, port] = host.split(':');
  const inner = (url = '/'): string => url.slice(prefix.length) || '/';
  const server = createServer((incoming, outgoing) => {
    const { method, headers } = incoming;
    const sent = request(
      { hostname, port, method, headers, path: inner(incoming.url) },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    incoming.pipe(sent);
  });
  server.on('upgrade', (incoming, socket) => {
    const lines = Object.entries(incoming.headers).map(
      ([name, value]) => `${name}: ${String(value)}`,
    );
    const wire = connect(Number(port), hostname, () => {
      wire.write([`GET ${inner(incoming.url)} HTTP/1.1`, ...lines, '', ''].join('\r\n'));
      wire.pipe(socket).pipe(wire);
    });
    for (const each of [wire, socket]) each.on('error', () => each.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Axe {
  run(options: { readonly resultTypes: readonly string[] }): Promise<{
    readonly violations: readonly {
      readonly id: string;
      readonly impact: string;
      readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
    }[];
  }>;
}

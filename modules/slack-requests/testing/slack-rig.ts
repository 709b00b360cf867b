// A platform with the module, a fake Slack server, and the configuration of a workspace, a channel and a template.

import type { NewCommand } from 'millrace/contracts';
import type { Observer } from 'millrace/foundation';
import {
  createPlatform,
  type EngineUrls,
  type ModuleContext,
  type Platform,
  type PlatformModule,
} from 'millrace/platform';
import { startFakeSlack, type FakeSlack } from 'millrace/testing';
import type { KeyStore, WorkQueue } from 'millrace/work';
import { configureChannel, configureTemplate, configureWorkspace } from '../config-events.ts';
import { requestProjection, type RequestDocument } from '../message-request-projection.ts';
import { createSecretBox } from '../secret-box.ts';
import { slackRequests, type SlackRequestsOptions } from '../slack-requests.ts';

export const tenant = 'core';
export const token = 'xoxb-4815162342-not-a-real-token';
export const secretKeys = [{ id: 'k1', key: Buffer.alloc(32, 7).toString('base64') }];

/** Everything that takes minutes in production takes milliseconds. */
const quick: SlackRequestsOptions = {
  secretKeys,
  timeoutMs: 5_000,
  lockMs: 15_000,
  settleMs: 50,
  retryMs: 50,
  channelIntervalMs: 0,
  workspaceIntervalMs: 0,
  sweepIntervalMs: 50,
  sweepGraceMs: 100,
  jobLeaseMs: 500,
};

export interface SlackRig extends AsyncDisposable {
  readonly platform: Platform;
  readonly slack: FakeSlack;
  send(id: string, command: NewCommand): Promise<void>;
  /** The key store and the queue of the module. */
  readonly keys: () => Promise<KeyStore>;
  readonly queue: () => Promise<WorkQueue>;
  /** Waits until the request has one of these statuses, and returns its snapshot. */
  inStatus(id: string, ...statuses: readonly string[]): Promise<RequestDocument>;
}

export async function slackRig(
  options: {
    readonly engines?: EngineUrls;
    readonly module?: SlackRequestsOptions;
    readonly observer?: Observer;
    readonly starts?: boolean;
  } = {},
): Promise<SlackRig> {
  const { engines = { store: 'memory:' }, observer, starts = true } = options;
  const slack = await startFakeSlack({ tokens: [token] });
  const module = slackRequests({ ...quick, apiUrl: slack.apiUrl, ...options.module });
  let context: ModuleContext | undefined;
  const seen: PlatformModule = {
    ...module,
    services(given) {
      context = given;
      return module.services?.(given) ?? [];
    },
  };
  const platform = await createPlatform({
    engines,
    modules: [seen],
    ...(observer === undefined ? {} : { observer }),
  });
  const send = async (id: string, command: NewCommand): Promise<void> => {
    await platform.handle({ tenant, id, command });
  };
  await configure(send);
  if (starts) await platform.start();
  return {
    platform,
    slack,
    send,
    keys: async () => (context as ModuleContext).keys(),
    queue: async () => (context as ModuleContext).workQueue(),
    inStatus: (id, ...statuses) => inStatus(platform, id, statuses),
    async [Symbol.asyncDispose]() {
      await platform[Symbol.asyncDispose]();
      await slack[Symbol.asyncDispose]();
    },
  };
}

async function configure(send: SlackRig['send']): Promise<void> {
  const sealed = createSecretBox(secretKeys).seal(token, {
    tenant,
    kind: 'workspace',
    code: 'acme',
  });
  await send(
    'acme',
    configureWorkspace({ name: 'Acme', token: sealed, defaultChannelId: 'C0DEFAULT' }),
  );
  await send('orders', configureChannel({ channelId: 'C0ORDERS' }));
  await send('paid', configureTemplate({ text: 'Order {{order.id}} is paid by {{by}}' }));
}

async function inStatus(
  platform: Platform,
  id: string,
  statuses: readonly string[],
): Promise<RequestDocument> {
  const documents = platform.documents({ bc: 'notification-slack', aggregate: 'message-request' });
  for (let left = 3_000; left > 0; left -= 1) {
    await platform
      .waitFor(requestProjection, await platform.engines.store.head(), { timeoutMs: 5_000 })
      .catch(() => undefined);
    const found = (await documents.get(tenant, id))?.document as RequestDocument | undefined;
    if (found !== undefined && statuses.includes(found.status)) return found;
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
  throw new Error(`${id} is not ${statuses.join(' or ')}`);
}

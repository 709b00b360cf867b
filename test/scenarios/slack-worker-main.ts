// The whole flow of Slack requests in one process, which kills itself before or after one of the calls
// for one request.

import { slackRequests, type SlackRequestsOptions } from '../../modules/slack-requests/index.ts';
import {
  createPlatform,
  type EngineUrls,
  type ModuleContext,
  type PlatformModule,
} from '../../src/platform/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import type { KeyStore, WorkQueue } from '../../src/work/index.ts';

export interface SlackWorkerInput {
  readonly engines: EngineUrls;
  readonly options: SlackRequestsOptions;
  /** The request, and the moment of the kill, such as `before queue.add`. */
  readonly killPoint?: { readonly id: string; readonly at: string } | undefined;
}

const { engines, options, killPoint } = childInput() as SlackWorkerInput;

function killAt(name: string, when: string): void {
  if (`${when} ${name}` === killPoint?.at) process.kill(process.pid, 'SIGKILL');
}

async function killable<T>(name: string, subject: string, call: () => Promise<T>): Promise<T> {
  const isKilledHere =
    killPoint !== undefined && new RegExp(`(^|:)${killPoint.id}(:|$)`).test(subject);
  if (!isKilledHere) return call();
  killAt(name, 'before');
  const result = await call();
  killAt(name, 'after');
  return result;
}

/** The last part of the key: `send-lock` or `dispatched`. */
function endOf(key: string): string {
  return key.slice(key.lastIndexOf(':') + 1);
}

function killableKeys(keys: KeyStore): KeyStore {
  return {
    get: (key) => killable(`get ${endOf(key)}`, key, () => keys.get(key)),
    putIfAbsent: (key, value, more) =>
      killable(`put ${endOf(key)}`, key, () => keys.putIfAbsent(key, value, more)),
    // Counts as the same step: after a slow start, the sweeper can replace the key before the dispatcher puts it.
    replace: (key, change) => killable(`put ${endOf(key)}`, key, () => keys.replace(key, change)),
    remove: (key, value) => killable(`remove ${endOf(key)}`, key, () => keys.remove(key, value)),
    [Symbol.asyncDispose]: () => keys[Symbol.asyncDispose](),
  };
}

function killableQueue(queue: WorkQueue): WorkQueue {
  const idOf = (data: unknown): string => (data as { messageRequestId: string }).messageRequestId;
  return {
    ...queue,
    add: (name, jobs) => killable('queue.add', idOf(jobs[0]?.data), () => queue.add(name, jobs)),
    work: (handle, more) =>
      queue.work(
        (job, context) => killable('job', idOf(job.data), () => handle(job, context)),
        more,
      ),
  };
}

function killableContext(context: ModuleContext): ModuleContext {
  return {
    ...context,
    keys: async () => killableKeys(await context.keys()),
    workQueue: async () => killableQueue(await context.workQueue()),
    send: (request) => killable(request.command.type, request.id, () => context.send(request)),
    load: (aggregate, address) =>
      killable(`load ${aggregate.category}`, address.id, () => context.load(aggregate, address)),
  };
}

const module = slackRequests(options);
const { services, subscriptions } = module;
const killableModule: PlatformModule = {
  ...module,
  services: (context) => services?.(killableContext(context)) ?? [],
  subscriptions: (context) =>
    typeof subscriptions === 'function' ? subscriptions(killableContext(context)) : [],
};
const platform = await createPlatform({ engines, modules: [killableModule], leaseMs: 400 });
await platform.start();
tellParent({ running: true });

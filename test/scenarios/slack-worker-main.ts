// The whole flow of Slack requests in one process, which kills itself at one step of one request: before or after
// one of the calls that are made for it.

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
  /** `before queue.add`: the first such moment of this request. */
  readonly strike?: { readonly id: string; readonly at: string };
}

const { engines, options, strike } = childInput() as SlackWorkerInput;

function moment(name: string, when: string): void {
  if (`${when} ${name}` === strike?.at) process.kill(process.pid, 'SIGKILL');
}

async function mortal<T>(name: string, subject: string, call: () => Promise<T>): Promise<T> {
  const isStruck = strike !== undefined && new RegExp(`(^|:)${strike.id}(:|$)`).test(subject);
  if (!isStruck) return call();
  moment(name, 'before');
  const result = await call();
  moment(name, 'after');
  return result;
}

/** `send-lock`, `dispatched`. */
function endOf(key: string): string {
  return key.slice(key.lastIndexOf(':') + 1);
}

function mortalKeys(keys: KeyStore): KeyStore {
  return {
    get: (key) => mortal(`get ${endOf(key)}`, key, () => keys.get(key)),
    putIfAbsent: (key, value, more) =>
      mortal(`put ${endOf(key)}`, key, () => keys.putIfAbsent(key, value, more)),
    // The same step: the sweeper, which is faster than the dispatcher after a slow start, replaces what is not there.
    replace: (key, change) => mortal(`put ${endOf(key)}`, key, () => keys.replace(key, change)),
    remove: (key, value) => mortal(`remove ${endOf(key)}`, key, () => keys.remove(key, value)),
    [Symbol.asyncDispose]: () => keys[Symbol.asyncDispose](),
  };
}

function mortalQueue(queue: WorkQueue): WorkQueue {
  const idOf = (data: unknown): string => (data as { messageRequestId: string }).messageRequestId;
  return {
    name: queue.name,
    add: (job) => mortal('queue.add', idOf(job.data), () => queue.add(job)),
    state: (id) => queue.state(id),
    work: (handle, more) =>
      queue.work((job, context) => mortal('job', idOf(job.data), () => handle(job, context)), more),
    [Symbol.asyncDispose]: () => queue[Symbol.asyncDispose](),
  };
}

function mortalContext(context: ModuleContext): ModuleContext {
  return {
    ...context,
    keys: async () => mortalKeys(await context.keys()),
    workQueue: async (name, more) => mortalQueue(await context.workQueue(name, more)),
    send: (request) => mortal(request.command.type, request.id, () => context.send(request)),
    load: (aggregate, address) =>
      mortal(`load ${aggregate.name}`, address.id, () => context.load(aggregate, address)),
  };
}

const module = slackRequests(options);
const { services, subscriptions } = module;
const doomed: PlatformModule = {
  ...module,
  services: (context) => services?.(mortalContext(context)) ?? [],
  subscriptions: (context) =>
    typeof subscriptions === 'function' ? subscriptions(mortalContext(context)) : [],
};
const platform = await createPlatform({ engines, modules: [doomed], leaseMs: 400 });
await platform.start();
tellParent({ running: true });

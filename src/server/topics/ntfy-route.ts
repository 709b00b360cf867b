// Maps a method and a path to one of ntfy's routes. Pure.

export type NtfyRoute =
  | { readonly kind: 'health' | 'stats' | 'config' | 'configJs' | 'account' | 'options' | 'empty' }
  /** For administrators only. */
  | {
      readonly kind: 'administration';
      readonly action:
        | 'version'
        | 'list-users'
        | 'add-user'
        | 'change-user'
        | 'remove-user'
        | 'set-access'
        | 'remove-access';
    }
  | { readonly kind: 'absent' }
  | { readonly kind: 'matrixDiscovery' | 'matrixPush' | 'publishJson' }
  | { readonly kind: 'file'; readonly id: string }
  | { readonly kind: 'publish'; readonly topic: string; readonly sequenceId?: string }
  | {
      readonly kind: 'change';
      readonly event: 'message_delete' | 'message_clear';
      readonly topic: string;
      readonly sequenceId: string;
    }
  | {
      readonly kind: 'subscribe';
      readonly form: 'json' | 'sse' | 'raw' | 'ws';
      /** Separated by commas, as in the path. */
      readonly topics: string;
    }
  | { readonly kind: 'auth'; readonly topics: string }
  | { readonly kind: 'page'; readonly topic: string };

/**
 * The scope of a platform token that a request needs. Without a platform token, the access rules of topics say who may read
 * (`read`) and publish (`append`), and users of topics may be administrators.
 */
export const topicRouteAccess: Readonly<
  Record<NtfyRoute['kind'], 'admin' | 'anonymous' | 'append' | 'read'>
> = {
  health: 'anonymous',
  stats: 'anonymous',
  config: 'anonymous',
  configJs: 'anonymous',
  account: 'anonymous',
  options: 'anonymous',
  empty: 'anonymous',
  absent: 'anonymous',
  page: 'anonymous',
  file: 'anonymous',
  matrixDiscovery: 'anonymous',
  auth: 'read',
  subscribe: 'read',
  publish: 'append',
  publishJson: 'append',
  change: 'append',
  matrixPush: 'append',
  administration: 'admin',
};

const name = '[-_A-Za-z0-9]{1,64}';
const topicPath = new RegExp(`^/(${name})$`);
const updatePath = new RegExp(`^/(${name})/(${name})$`);
const changePath = new RegExp(`^/(${name})/(${name})/(read|clear|delete)$`);
const readPath = new RegExp(`^/(${name}(?:,${name})*)/(json|sse|raw|ws|auth)$`);
const publishPath = new RegExp(`^/(${name})/(?:publish|send|trigger)$`);
const filePath = /^\/file\/([-_A-Za-z0-9]{1,64})(?:\.[A-Za-z0-9]{1,16})?$/;

/** Routes without parameters. */
export const fixedRoutes: Readonly<Record<string, NtfyRoute>> = {
  'HEAD /': { kind: 'empty' },
  'GET /v1/health': { kind: 'health' },
  'GET /v1/stats': { kind: 'stats' },
  'GET /v1/config': { kind: 'config' },
  'GET /config.js': { kind: 'configJs' },
  'GET /v1/account': { kind: 'account' },
  'GET /v1/version': { kind: 'administration', action: 'version' },
  'GET /v1/users': { kind: 'administration', action: 'list-users' },
  'POST /v1/users': { kind: 'administration', action: 'add-user' },
  'PUT /v1/users': { kind: 'administration', action: 'change-user' },
  'DELETE /v1/users': { kind: 'administration', action: 'remove-user' },
  'PUT /v1/users/access': { kind: 'administration', action: 'set-access' },
  'POST /v1/users/access': { kind: 'administration', action: 'set-access' },
  'DELETE /v1/users/access': { kind: 'administration', action: 'remove-access' },
  // Routes of features that this server does not have: web push, payments, self-registration.
  'POST /v1/webpush': { kind: 'absent' },
  'DELETE /v1/webpush': { kind: 'absent' },
  'GET /v1/tiers': { kind: 'absent' },
  'GET /manifest.webmanifest': { kind: 'absent' },
  'GET /_matrix/push/v1/notify': { kind: 'matrixDiscovery' },
  'POST /_matrix/push/v1/notify': { kind: 'matrixPush' },
  'PUT /': { kind: 'publishJson' },
  'POST /': { kind: 'publishJson' },
};

/** Undefined: not a route of ntfy. */
export function ntfyRouteOf(method: string, path: string): NtfyRoute | undefined {
  const known = fixedRoutes[`${method} ${path}`];
  if (known !== undefined) return known;
  if (method === 'GET' || method === 'HEAD') {
    const id = filePath.exec(path)?.[1];
    if (id !== undefined) return { kind: 'file', id };
  }
  if (method === 'OPTIONS') return { kind: 'options' };
  if (method === 'GET') return readRouteOf(path);
  if (method === 'PUT' || method === 'POST') return writeRouteOf(method, path);
  if (method === 'DELETE') {
    const [, topic, sequenceId] = updatePath.exec(path) ?? [];
    if (topic !== undefined && sequenceId !== undefined) {
      return { kind: 'change', event: 'message_delete', topic, sequenceId };
    }
  }
  return undefined;
}

function writeRouteOf(method: string, path: string): NtfyRoute | undefined {
  const topic = topicPath.exec(path)?.[1];
  if (topic !== undefined) return { kind: 'publish', topic };
  const [, updated, sequenceId] = updatePath.exec(path) ?? [];
  if (updated !== undefined && sequenceId !== undefined) {
    return { kind: 'publish', topic: updated, sequenceId };
  }
  return method === 'PUT' ? changeRouteOf(path, ['read', 'clear']) : undefined;
}

function readRouteOf(path: string): NtfyRoute | undefined {
  const changed = changeRouteOf(path, ['read', 'clear', 'delete']);
  if (changed !== undefined) return changed;
  const topic = publishPath.exec(path)?.[1];
  if (topic !== undefined) return { kind: 'publish', topic };
  const [, topics, form] = readPath.exec(path) ?? [];
  if (topics !== undefined) {
    if (form === 'auth') return { kind: 'auth', topics };
    return { kind: 'subscribe', form: form as 'json' | 'sse' | 'raw' | 'ws', topics };
  }
  const page = topicPath.exec(path)?.[1];
  return page === undefined ? undefined : { kind: 'page', topic: page };
}

function changeRouteOf(path: string, words: readonly string[]): NtfyRoute | undefined {
  const [, topic, sequenceId, word = ''] = changePath.exec(path) ?? [];
  if (topic === undefined || sequenceId === undefined || !words.includes(word)) return undefined;
  const event = word === 'delete' ? 'message_delete' : 'message_clear';
  return { kind: 'change', event, topic, sequenceId };
}

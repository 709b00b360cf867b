// ntfy's API over a platform: its bus, its outbox for e-mail, and its tokens in addition to the users of topics.

import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { silentObserver, type Observer } from '../../foundation/observer.ts';
import type { NotifyUser, TopicPermission } from '../../topics/users/access-rules.ts';
import { fileAttachments } from '../../topics/file-attachments.ts';
import { createNotifyUsers } from '../../topics/users/notify-users.ts';
import { openUserDirectory } from '../../topics/users/open-user-directory.ts';
import type { TopicMessage } from '../../topics/topic-message.ts';
import { openTopics, type NotifyEmail } from '../../topics/topics.ts';
import { createAuditLog } from '../../platform/audit-log.ts';
import type { Platform } from '../../platform/create-platform.ts';
import type { NotifySettings } from '../../platform/config/notify-settings.ts';
import { allowsScope } from '../../platform/tokens/scopes.ts';
import type { VerifiedToken } from '../../platform/tokens/token.ts';
import { isReachableFromElsewhere, type Reach } from '../http/reach.ts';
import { createNtfyHandler, type NtfyHandler } from './ntfy-handler.ts';

export interface OpenNtfyOptions extends Pick<Reach, 'host' | 'hosts'> {
  readonly settings?: NotifySettings | undefined;
  /** Origins of web pages that may publish without credentials. Default: the server's own. */
  readonly corsOrigins?: readonly string[] | undefined;
  /** Base of relative folders. */
  readonly cwd?: string | undefined;
  /** Where the server listens, once that is known. */
  readonly url: () => string | undefined;
  /** The product's version, which administrators can read. */
  readonly version?: string | undefined;
  readonly observer?: Observer | undefined;
}

const emailType = 'email:ntfy';

/**
 * The handler of ntfy's API over a platform.
 *
 * @example
 * import { createPlatform } from 'millrace/platform';
 * import { openNtfy, startNtfyServer } from 'millrace/server/topics';
 *
 * await using platform = await createPlatform();
 * let url: string | undefined;
 * await using ntfy = await openNtfy(platform, { url: () => url });
 * await using server = await startNtfyServer(ntfy, { port: 2586 });
 * ({ url } = server);
 */
export async function openNtfy(
  platform: Pick<Platform, 'clock' | 'engines' | 'modules' | 'tokens'>,
  options: OpenNtfyOptions,
): Promise<NtfyHandler> {
  const { settings = {}, cwd = process.cwd(), observer = silentObserver } = options;
  const { clock, engines, modules, tokens } = platform;
  const { attachments = '.millrace/attachments', baseUrl, upstreamUrl, upstreamToken } = settings;
  const hasEmail =
    engines.outbox !== undefined &&
    [emailType, 'email'].some((name) => name in modules.destinations);
  const sendEmail = async ({ to, message, sender }: NotifyEmail): Promise<void> => {
    await engines.outbox?.enqueue({
      sourceStreamId: `gbe.notify.topic.${message.topic}`,
      sourceEventId: message.id,
      integrationType: emailType,
      eventType: 'notify.topic-message.v1',
      payload: { to, sender, ...message },
    });
  };
  const forward =
    upstreamUrl === undefined || baseUrl === undefined
      ? undefined
      : createPollRequests({ baseUrl, upstreamUrl, upstreamToken, observer });
  await using opened = new AsyncDisposableStack();
  const topics = opened.use(
    await openTopics(await engines.bus(), {
      clock,
      observer,
      baseUrl: () => baseUrl ?? options.url(),
      limits: settings.limits,
      templates: settings.templates,
      reserved: settings.reservedTopics,
      attachments:
        attachments === false
          ? undefined
          : fileAttachments(resolve(cwd, attachments), clock, engines.store.personalData),
      sendEmail: hasEmail ? sendEmail : undefined,
      forward,
    }),
  );
  const directory = opened.use(
    await openUserDirectory(engines.store, {
      clock,
      observer,
      users: settings.users,
      access: settings.access,
    }),
  );
  const users = createNotifyUsers({
    directory,
    tokens: settings.tokens,
    verifyForeign: (secret) => userOf(tokens.verify(secret)),
  });
  const handler = opened.use(
    createNtfyHandler(topics, {
      users,
      directory,
      audit: createAuditLog(engines.store, { clock, observer }),
      version: options.version,
      defaultAccess: defaultAccessOf(options),
      isLocal: !isReachable(options),
      corsOrigins: options.corsOrigins,
      exemptHosts: settings.exemptHosts,
      isBehindProxy: settings.behindProxy,
      clock,
      observer,
    }),
  );
  const all = opened.move();
  return { ...handler, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/**
 * The access to topics without an access rule: open only while no other machine can reach the server.
 *
 * @example
 * import { defaultAccessOf } from 'millrace/server/topics';
 *
 * console.log(defaultAccessOf({ settings: { behindProxy: true } })); // deny
 */
export function defaultAccessOf(
  options: Pick<OpenNtfyOptions, 'host' | 'hosts' | 'settings'>,
): TopicPermission {
  return options.settings?.defaultAccess ?? (isReachable(options) ? 'deny' : 'read-write');
}

function isReachable({
  host,
  hosts,
  settings: { behindProxy, baseUrl } = {},
}: Pick<OpenNtfyOptions, 'host' | 'hosts' | 'settings'>): boolean {
  return isReachableFromElsewhere({ host, hosts, behindProxy, baseUrl });
}

/** The user of a platform token, by its scopes. Tokens of a tenant are rejected: topics have no tenant. */
function userOf(verified: VerifiedToken | undefined): NotifyUser | undefined {
  if (verified === undefined || verified.token.tenant !== undefined) return undefined;
  const { ended, token } = verified;
  const { name, scopes } = token;
  if (scopes.includes('admin')) return { name, ended, role: 'admin', permission: 'read-write' };
  const [reads, writes] = [allowsScope(scopes, 'read'), allowsScope(scopes, 'append')];
  if (reads && writes) return { name, ended, role: 'user', permission: 'read-write' };
  if (writes) return { name, ended, role: 'user', permission: 'write-only' };
  return { name, ended, role: 'user', permission: reads ? 'read-only' : 'deny' };
}

const pollRequestsMax = 100;
const pollTimeoutMs = 10_000;

/**
 * Notifies the upstream server of each message, because the iPhone app receives pushes from there only. The
 * request contains the id of the message, not its content.
 */
function createPollRequests(options: {
  readonly baseUrl: string;
  readonly upstreamUrl: string;
  readonly upstreamToken: string | undefined;
  readonly observer: Observer;
}): (message: TopicMessage) => void {
  const { baseUrl, upstreamUrl, upstreamToken, observer } = options;
  let inFlight = 0;

  async function send({ id, topic }: TopicMessage): Promise<void> {
    const hash = createHash('sha256').update(`${baseUrl}/${topic}`).digest('hex');
    const answer = await fetch(`${upstreamUrl}/${hash}`, {
      method: 'POST',
      headers: {
        'x-poll-id': id,
        ...(upstreamToken === undefined ? {} : { authorization: `Bearer ${upstreamToken}` }),
      },
      signal: AbortSignal.timeout(pollTimeoutMs),
    });
    await answer.body?.cancel();
    if (!answer.ok) observer.log?.warn({ status: answer.status }, 'poll request rejected');
  }

  return (message) => {
    if (message.event !== 'message') return;
    if (inFlight >= pollRequestsMax) {
      observer.log?.warn({ inFlight }, 'poll request dropped');
      return;
    }
    inFlight += 1;
    send(message)
      .catch((error: unknown) => observer.log?.warn({ err: error }, 'poll request failed'))
      .finally(() => (inFlight -= 1));
  };
}

// Topics of a platform, served in ntfy's way: its bus, its outbox for e-mail, its tokens beside topic users.

import { resolve } from 'node:path';
import { silentObserver, type Observer } from '../../foundation/observer.ts';
import type { NotifyUser } from '../../notify/access-rules.ts';
import { fileAttachments } from '../../notify/file-attachments.ts';
import { createNotifyUsers } from '../../notify/notify-users.ts';
import { openUserDirectory } from '../../notify/open-user-directory.ts';
import { openTopics, type NotifyEmail } from '../../notify/topics.ts';
import { createUpstreamPolls } from '../../notify/upstream-polls.ts';
import type { Platform } from '../../platform/create-platform.ts';
import type { NotifySettings } from '../../platform/config/notify-settings.ts';
import type { VerifiedToken } from '../../platform/tokens/open-tokens.ts';
import { createNtfyHandler, type NtfyHandler } from './ntfy-handler.ts';

export interface OpenNtfyOptions {
  readonly settings?: NotifySettings;
  /** Nobody but this machine reaches it: without rules, everybody may. */
  readonly isLoopback: boolean;
  /** Of relative folders. */
  readonly cwd?: string;
  /** Where it listens, once that is known. */
  readonly url: () => string | undefined;
  /** Of the product, for administrators. */
  readonly version?: string;
  readonly observer?: Observer;
}

const emailType = 'email:ntfy';

/**
 * The handler of ntfy's API over a platform.
 *
 * @example
 * import { createPlatform } from 'millrace/platform';
 * import { openNtfy, startNtfyServer } from 'millrace/server/ntfy';
 *
 * await using platform = await createPlatform();
 * let url: string | undefined;
 * await using ntfy = await openNtfy(platform, { isLoopback: true, url: () => url });
 * await using server = await startNtfyServer(ntfy, { port: 2586 });
 * ({ url } = server);
 */
export async function openNtfy(
  platform: Pick<Platform, 'clock' | 'engines' | 'modules' | 'tokens'>,
  options: OpenNtfyOptions,
): Promise<NtfyHandler> {
  const { settings = {}, isLoopback, cwd = process.cwd(), observer = silentObserver } = options;
  const { clock, engines, modules, tokens } = platform;
  const { attachments = '.millrace/attachments', baseUrl, upstreamUrl, upstreamToken } = settings;
  const hasEmail = [emailType, 'email'].some((name) => name in modules.destinations);
  const sendEmail = async ({ to, message, sender }: NotifyEmail): Promise<void> => {
    await engines.ledger.enqueue({
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
      : createUpstreamPolls({ baseUrl, upstreamUrl, upstreamToken, observer });
  await using opened = new AsyncDisposableStack();
  const topics = opened.use(
    await openTopics(await engines.bus(), {
      clock,
      observer,
      baseUrl: () => baseUrl ?? options.url(),
      ...(settings.limits === undefined ? {} : { limits: settings.limits }),
      ...(settings.durability === undefined ? {} : { durability: settings.durability }),
      ...(settings.templates === undefined ? {} : { templates: settings.templates }),
      ...(settings.reservedTopics === undefined ? {} : { reserved: settings.reservedTopics }),
      ...(attachments === false
        ? {}
        : { attachments: fileAttachments(resolve(cwd, attachments), clock) }),
      ...(hasEmail ? { sendEmail } : {}),
      ...(forward === undefined ? {} : { forward }),
    }),
  );
  const directory = opened.use(
    await openUserDirectory(engines.store, {
      clock,
      observer,
      ...(settings.users === undefined ? {} : { users: settings.users }),
      ...(settings.access === undefined ? {} : { access: settings.access }),
    }),
  );
  const users = createNotifyUsers({
    directory,
    ...(settings.tokens === undefined ? {} : { tokens: settings.tokens }),
    verifyForeign: (secret) => userOf(tokens.verify(secret)),
  });
  const handler = createNtfyHandler(topics, {
    users,
    directory,
    version: options.version ?? '',
    defaultAccess: settings.defaultAccess ?? (isLoopback ? 'read-write' : 'deny'),
    exemptHosts: settings.exemptHosts ?? [],
    isBehindProxy: settings.behindProxy ?? false,
    clock,
    observer,
  });
  const all = opened.move();
  return {
    ...handler,
    async [Symbol.asyncDispose]() {
      await handler[Symbol.asyncDispose]();
      await all.disposeAsync();
    },
  };
}

/** A token of the platform, by its scopes; one of a tenant is not for topics, which belong to all. */
function userOf(verified: VerifiedToken | undefined): NotifyUser | undefined {
  if (verified === undefined || verified.token.tenant !== undefined) return undefined;
  const { ended, token } = verified;
  const { name, scopes } = token;
  if (scopes.includes('admin')) return { name, ended, role: 'admin', permission: 'read-write' };
  const [reads, writes] = [scopes.includes('read'), scopes.includes('append')];
  if (reads && writes) return { name, ended, role: 'user', permission: 'read-write' };
  if (writes) return { name, ended, role: 'user', permission: 'write-only' };
  return { name, ended, role: 'user', permission: reads ? 'read-only' : 'deny' };
}

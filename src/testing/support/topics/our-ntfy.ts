// Our server with the users and rules of the cases.

import { join } from 'node:path';
import { systemClock, type Clock } from '../../../foundation/clock.ts';
import { fileAttachments } from '../../../topics/file-attachments.ts';
import { hashNotifyPassword } from '../../../topics/users/notify-password.ts';
import { createNotifyUsers } from '../../../topics/users/notify-users.ts';
import { openTopics } from '../../../topics/topics.ts';
import type { NotifyLimits } from '../../../topics/visitor-limits.ts';
import { openRole } from '../../../platform/engines/open-engines.ts';
import { memoryUserDirectory } from '../../../topics/users/user-directory.ts';
import { createNtfyHandler } from '../../../server/topics/ntfy-handler.ts';
import { startNtfyServer } from '../../../server/topics/start-ntfy-server.ts';
import { reservePort } from '../../servers/reserve-port.ts';
import { rules, tokens, users } from './ntfy-server-facts.ts';
import type { CaseServer } from './ntfy-case.ts';

export interface OurNtfy extends CaseServer, AsyncDisposable {}

export async function startOurNtfy(options: {
  readonly folder: string;
  readonly bus?: string;
  readonly limits?: Partial<NotifyLimits>;
  readonly clock?: Clock;
  readonly isExempt?: boolean;
}): Promise<OurNtfy> {
  const { folder, clock = systemClock, isExempt = true } = options;
  await using opened = new AsyncDisposableStack();
  const bus = opened.use(
    await openRole(options.bus ?? `sqlite:${join(folder, 'bus.db')}`, 'bus', { clock }),
  );
  const { host, port } = opened.use(await reservePort());
  const topics = opened.use(
    await openTopics(bus, {
      clock,
      baseUrl: `http://${host}:${port}`,
      attachments: fileAttachments(join(folder, 'attachments'), clock),
      limits: { attachmentBytesMax: 1_000_000, newTopicsBurst: 100_000, ...options.limits },
    }),
  );
  const known = await Promise.all(
    users.map(async ({ name, password, role }) => ({
      name,
      role,
      passwordHash: await hashNotifyPassword(password),
    })),
  );
  const directory = memoryUserDirectory({ users: known, access: rules });
  const handler = opened.use(
    createNtfyHandler(topics, {
      users: createNotifyUsers({ directory, tokens }),
      directory,
      version: '1.2.3',
      exemptHosts: isExempt ? ['127.0.0.1'] : [],
      clock,
    }),
  );
  const server = await startNtfyServer(handler, { host, port });
  const all = opened.move();
  return {
    url: server.url,
    async [Symbol.asyncDispose]() {
      // The server waits for its readers, which the topics disconnect.
      const closing = server[Symbol.asyncDispose]();
      await all.disposeAsync();
      await closing;
    },
  };
}

// What administrators do on the command line is on record as what they do over HTTP: before the deed, and
// after it, by the user of the operating system. Variables of the environment say whatever one likes.

import { userInfo } from 'node:os';
import { hasCode } from '../foundation/error.ts';
import { createAuditLog, type AuditRequest } from '../platform/audit-log.ts';
import type { EventStore } from '../store/event-store.ts';
import type { CommandContext } from './command.ts';
import { openExistingStore, shownStore, storeUrl } from './store-option.ts';

type AdminAction = Pick<AuditRequest, 'action' | 'target'>;

export function onRecord<T>(
  store: EventStore,
  deed: AdminAction,
  work: () => Promise<T>,
): Promise<T> {
  const actor = { kind: 'cli', name: `cli:${systemUser()}` };
  return createAuditLog(store).run({ ...deed, actor }, work);
}

/** An outbox may stand alone: without an event store there is no record, and that is said. */
export async function outboxOnRecord<T>(
  context: Pick<CommandContext, 'cwd' | 'env' | 'stderr'>,
  { given, ...deed }: AdminAction & { readonly given: string | undefined },
  work: () => Promise<T>,
): Promise<T> {
  const store = await openExistingStore(context, given).catch((error: unknown) => {
    if (hasCode(error, 'CONFIG_INVALID')) return undefined;
    throw error;
  });
  if (store === undefined) {
    const shown = await shownStore(context, storeUrl(context, given));
    context.stderr.write(`not on record: there is no event store at ${shown}\n`);
    return work();
  }
  await using opened = store;
  return await onRecord(opened, deed, work);
}

/** A process in a container may have a number and no name. */
function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}

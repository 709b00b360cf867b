// Audits the admin actions of the command line like those of the HTTP API: an entry before the action
// and one after it.

import { userInfo } from 'node:os';
import { hasCode } from '../foundation/error.ts';
import { createAuditLog, type AuditRequest } from '../platform/audit-log.ts';
import type { EventStore } from '../store/event-store.ts';
import type { CommandContext } from './command.ts';
import { option } from './options.ts';
import { displayUrl, openExistingStore, storeUrl } from './stores.ts';

const nameCharsMax = 120;

export const byOption = {
  by: option(
    'name',
    'name to record (default: MILLRACE_USER, or the user of the operating system)',
  ),
};

/** The operator's name: `MILLRACE_USER`, or the user of the operating system. */
export function operatorName({ env }: Pick<CommandContext, 'env'>): string {
  const explicit = env['MILLRACE_USER'] ?? '';
  return (explicit === '' ? systemUser() : explicit).slice(0, nameCharsMax);
}

/** In a container, the process may have a user id without a name. */
function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}

type AdminAction = Pick<AuditRequest, 'action' | 'target'>;

export function audited<T>(
  context: Pick<CommandContext, 'env'>,
  { store, ...action }: AdminAction & { readonly store: EventStore },
  work: () => Promise<T>,
): Promise<T> {
  const actor = { kind: 'cli', name: `cli:${operatorName(context)}` };
  return createAuditLog(store).run({ ...action, actor }, work);
}

/** Audits actions on outbox and tasks, which may run without an event store; a warning reports a missing store. */
export async function auditedIfStoreExists<T>(
  context: Pick<CommandContext, 'cwd' | 'env' | 'stderr'>,
  { storeUrl: given, ...action }: AdminAction & { readonly storeUrl: string | undefined },
  work: () => Promise<T>,
): Promise<T> {
  const store = await openExistingStore(context, given).catch((error: unknown) => {
    if (hasCode(error, 'CONFIG_INVALID')) return undefined;
    throw error;
  });
  if (store === undefined) {
    const shown = await displayUrl(context, storeUrl(context, given));
    context.stderr.write(`not audited: no event store at ${shown}\n`);
    return work();
  }
  await using opened = store;
  return await audited(context, { ...action, store: opened }, work);
}

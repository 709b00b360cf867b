// The outbox as the command line works on it: the ledger beside the store that `--store` names.

import { MillraceError } from '../foundation/error.ts';
import type { OutboxFilter, OutboxLedger } from '../outbox/outbox-ledger.ts';
import type { OutboxMessage } from '../outbox/outbox-message.ts';
import type { CommandContext } from './command.ts';
import { sinceTime } from './letter-filter-options.ts';
import type { Paint } from './paint.ts';
import { openExistingStore, outboxUrl, shownStore } from './store-option.ts';

/** A mistyped file is not made, and no schema either. */
export async function openOutbox(
  context: Pick<CommandContext, 'cwd' | 'env'>,
  given: string | undefined,
): Promise<OutboxLedger> {
  const url = outboxUrl(context, given);
  // A ledger in a file would make the file.
  if (url.startsWith('sqlite:')) {
    const store = await openExistingStore(context, url);
    await store[Symbol.asyncDispose]();
  }
  const { openOutboxLedger } = await import('../platform/engines/open-outbox-ledger.ts');
  const ledger = await openOutboxLedger(url, { migrate: 'off' });
  try {
    await ledger.paused();
    return ledger;
  } catch (error) {
    await ledger[Symbol.asyncDispose]();
    if (!isMissing(error)) throw error;
    const shown = await shownStore(context, url);
    throw new MillraceError(
      'CONFIG_INVALID',
      `there is no outbox at ${shown} yet: run millrace migrate --outbox`,
      { cause: error, details: { store: shown } },
    );
  }
}

/** PostgreSQL's codes for a schema and a table that are not there. */
function isMissing(error: unknown): boolean {
  const code = error instanceof MillraceError ? error.details['code'] : undefined;
  return code === '3F000' || code === '42P01';
}

export const outboxFilterOptions = {
  to: { type: 'string', value: 'type', summary: 'only this destination, such as kafka:payments' },
  tenant: { type: 'string', value: 'key', summary: 'only this tenant' },
  since: { type: 'string', value: 'time', summary: 'not older than 12h, 30d, or a date and time' },
} as const;

export function outboxFilterOf(
  values: {
    readonly to?: string | undefined;
    readonly tenant?: string | undefined;
    readonly since?: string | undefined;
  },
  nowMs: number,
): OutboxFilter {
  return {
    ...(values.to === undefined ? {} : { integrationType: values.to }),
    ...(values.tenant === undefined ? {} : { tenantId: values.tenant }),
    ...(values.since === undefined ? {} : { since: new Date(sinceTime(values.since, nowMs)) }),
  };
}

export function statusText({ status }: Pick<OutboxMessage, 'status'>, paint: Paint): string {
  if (status === 'SENT') return paint.green(status);
  if (status === 'DEAD') return paint.red(status);
  return status === 'FAILED' ? paint.cyan(status) : paint.dim(status);
}

// Settings of those who claim and send: refused where they cannot work.

import { MillraceError } from '../foundation/error.ts';

export function checkDispatch(numbers: Readonly<Record<string, number>>): void {
  for (const [field, value] of Object.entries(numbers)) {
    if (Number.isInteger(value) && value >= 1) continue;
    throw new MillraceError('OUTBOX_INVALID', `${field} must be a whole number from 1 on`, {
      details: { field },
    });
  }
  const { timeoutMs, leaseMs } = numbers;
  if (timeoutMs !== undefined && leaseMs !== undefined && timeoutMs >= leaseMs) {
    throw new MillraceError('OUTBOX_INVALID', 'timeoutMs must be below leaseMs', {
      details: { field: 'timeoutMs' },
    });
  }
}

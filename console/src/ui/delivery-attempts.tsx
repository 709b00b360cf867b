// The attempts of a delivery that the ledger keeps: time, duration, status, masked headers and the start of the answer.

import { useQuery } from '@tanstack/react-query';
import { call } from '../lib/api.ts';
import { durationText } from '../lib/format.ts';
import { Badge, Time } from './parts.tsx';

export function DeliveryAttempts({
  id,
  isShown = true,
}: {
  readonly id: string;
  /** They are read when they are shown. */
  readonly isShown?: boolean;
}) {
  const { data, error } = useQuery({
    queryKey: ['attempts', id],
    queryFn: ({ signal }) => call('GET /admin/outbox/{id}/attempts', { params: { id }, signal }),
    enabled: isShown,
  });
  if (error !== null) return <p className="text-bad">{error.message}</p>;
  if (data === undefined) return null;
  if (data.items.length === 0) {
    return <p className="text-xs text-soft">No attempt has failed.</p>;
  }
  return (
    <ol className="divide-y divide-line overflow-hidden rounded-md border border-line text-xs">
      {data.items.map(({ at, durationMs, status, outcome, headers, answer = '' }) => (
        <li key={at} className="px-3 py-2">
          <p className="flex flex-wrap items-center gap-2">
            <Badge tone={outcome === 'sent' ? 'good' : 'bad'}>
              {status === undefined ? outcome : `HTTP ${status}`}
            </Badge>
            <Time at={at} />
            <span className="ml-auto text-soft">{durationText(durationMs)}</span>
          </p>
          {headers === undefined ? null : (
            <pre tabIndex={0} className="mt-1 max-h-32 overflow-auto text-[11px] text-soft">
              {Object.entries(headers)
                .map(([name, value]) => `${name}: ${value}`)
                .join('\n')}
            </pre>
          )}
          {answer === '' ? null : (
            <pre tabIndex={0} className="mt-1 max-h-32 overflow-auto text-[11px]">
              {answer}
            </pre>
          )}
        </li>
      ))}
    </ol>
  );
}

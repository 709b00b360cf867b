// The audit: who changed what, from where, and how it ended.

import { useSearch } from '@tanstack/react-router';
import type { AuditEntry } from '../api.gen.ts';
import { call } from '../lib/api.ts';
import { useSearchChange } from '../lib/details.ts';
import { durationText } from '../lib/format.ts';
import { pageSize, useList } from '../lib/list.ts';
import type { AuditSearch } from '../router.tsx';
import { TextFilters } from '../ui/filters.tsx';
import { ListView, RowName, type Column } from '../ui/list-view.tsx';
import { Badge, CopyButton, Fact, Facts, Time } from '../ui/parts.tsx';
import { Sheet } from '../ui/sheet.tsx';
import { Empty } from '../ui/states.tsx';

const keyOf = ({ id }: AuditEntry): string => id;

const columns: readonly Column<AuditEntry>[] = [
  { title: 'Action', cell: ({ action, target }) => <RowName name={action} about={target} /> },
  { title: 'Outcome', cell: (entry) => <Outcome entry={entry} /> },
  { title: 'Actor', isExtra: true, cell: ({ actor }) => actor.name || actor.kind },
  {
    title: 'Tenant',
    isExtra: true,
    cell: ({ actor }) => <span className="text-soft">{actor.tenant ?? 'all'}</span>,
  },
  { title: 'Time', isRight: true, cell: ({ at }) => <Time at={at} /> },
];

function Outcome({ entry: { outcome, error } }: { readonly entry: AuditEntry }) {
  const tone = outcome === 'done' ? 'good' : outcome === 'failed' ? 'bad' : 'neutral';
  return (
    <span className="flex flex-wrap items-center gap-1.5">
      <Badge tone={tone}>{outcome}</Badge>
      {error === undefined ? null : <span className="mono text-2xs text-soft">{error}</span>}
    </span>
  );
}

export function AuditView() {
  const { actor, action, open } = useSearch({ from: '/audit' });
  const set = useSearchChange<AuditSearch>('open');
  const list = useList({
    queryKey: ['audit', actor, action],
    load: (cursor, signal) =>
      call('GET /admin/audit', { query: { actor, action, cursor, limit: pageSize }, signal }),
    keyOf,
  });
  const entry = list.rows.find(({ id }) => id === open);
  return (
    <ListView
      title="Audit"
      label="Audit"
      aside="admin actions, newest first"
      filters={
        <TextFilters
          fields={[
            { name: 'actor', title: 'Actor', example: 'oncall' },
            { name: 'action', title: 'Action', example: 'dead-letter.replay' },
          ]}
          values={{ actor, action }}
          onChange={(values) => set({ ...values, open: undefined })}
        />
      }
      list={list}
      columns={columns}
      keyOf={keyOf}
      open={open}
      onOpen={(id) => set({ open: id })}
      isFiltered={(actor ?? action) !== undefined}
      onReset={() => set({ actor: undefined, action: undefined })}
      empty={
        <Empty title="No admin actions yet">
          Every replay, discard, pause, retry, token and sign-in is recorded here.
        </Empty>
      }
    >
      <Sheet
        isOpen={entry !== undefined}
        onClose={() => set({ open: undefined })}
        title={entry?.action ?? ''}
      >
        {entry === undefined ? null : <EntryFacts entry={entry} />}
      </Sheet>
    </ListView>
  );
}

function EntryFacts({ entry }: { readonly entry: AuditEntry }) {
  const { at, endedAt, target, actor, requestId } = entry;
  return (
    <Facts>
      <Fact name="Outcome">
        <Outcome entry={entry} />
      </Fact>
      <Fact name="Target">
        <span className="mono break-all">{target}</span>
      </Fact>
      <Fact name="Actor">
        {actor.name} <span className="text-soft">({actor.kind})</span>
      </Fact>
      <Fact name="Tenant">{actor.tenant ?? 'all tenants'}</Fact>
      <Fact name="Address">
        <span className="mono">{actor.address ?? '–'}</span>
      </Fact>
      <Fact name="Time">
        <Time at={at} />
      </Fact>
      <Fact name="Took">
        {endedAt === undefined ? '–' : durationText(Date.parse(endedAt) - Date.parse(at))}
      </Fact>
      {requestId === undefined ? null : (
        <Fact name="Request">
          <span className="mono break-all">{requestId}</span>
          <CopyButton text={requestId} label="Copy the request id" />
        </Fact>
      )}
    </Facts>
  );
}

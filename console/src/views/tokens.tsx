// Tokens: who may call what, and since when. Secrets are never shown.

import { useQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { ShieldX } from 'lucide-react';
import type { Token } from '../api.gen.ts';
import { call } from '../lib/api.ts';
import { useSearchChange } from '../lib/details.ts';
import { listOf } from '../lib/list.ts';
import type { OpenSearch } from '../router.tsx';
import { Actions } from '../ui/actions.tsx';
import { ListView, RowName, type Column } from '../ui/list-view.tsx';
import { Ago, Badge, CopyButton, Fact, Facts, Time } from '../ui/parts.tsx';
import { Sheet } from '../ui/sheet.tsx';
import { Empty } from '../ui/states.tsx';

const createCommand = 'npm run millrace -- token create oncall --scope operate';

const columns: readonly Column<Token>[] = [
  { title: 'Name', cell: ({ name }) => <RowName name={name} /> },
  { title: 'State', cell: ({ state }) => <TokenState state={state} /> },
  { title: 'Scopes', cell: ({ scopes }) => <Scopes scopes={scopes} /> },
  {
    title: 'Tenant',
    isExtra: true,
    cell: ({ tenant }) => <span className="text-soft">{tenant ?? 'all'}</span>,
  },
  {
    title: 'Expires',
    isExtra: true,
    cell: ({ expiresAt }) =>
      expiresAt === undefined ? <span className="text-soft">never</span> : <Time at={expiresAt} />,
  },
  {
    title: 'Created',
    isRight: true,
    isExtra: true,
    cell: ({ createdAt }) => <Ago at={createdAt} />,
  },
];

function TokenState({ state }: { readonly state: Token['state'] }) {
  return (
    <Badge tone={state === 'live' ? 'good' : 'neutral'}>
      {state === 'live' ? 'active' : state}
    </Badge>
  );
}

function Scopes({ scopes }: { readonly scopes: Token['scopes'] }) {
  return (
    <span className="flex flex-wrap gap-1">
      {scopes.map((scope) => (
        <Badge key={scope} tone={scope === 'admin' ? 'warn' : 'neutral'}>
          {scope}
        </Badge>
      ))}
    </span>
  );
}

export function TokensView() {
  const { open } = useSearch({ from: '/tokens' });
  const change = useSearchChange<OpenSearch>('open');
  const query = useQuery({
    queryKey: ['tokens'],
    queryFn: ({ signal }) => call('GET /admin/tokens', { signal }),
  });
  const onOpen = (key: string | undefined): void => change({ open: key });
  const rows = query.data?.items.toReversed();
  const token = rows?.find(({ id }) => id === open);
  return (
    <ListView
      title="Tokens"
      label="Tokens"
      aside="newest first, without secrets"
      list={listOf(query, rows)}
      columns={columns}
      keyOf={({ id }) => id}
      open={open}
      onOpen={onOpen}
      empty={
        <Empty title="No tokens" command={createCommand}>
          A token has scopes, and one tenant or all. This command creates one and prints its secret:
        </Empty>
      }
    >
      <Sheet
        isOpen={open !== undefined && rows !== undefined}
        onClose={() => onOpen(undefined)}
        title={token?.name ?? 'Token'}
      >
        {token === undefined ? (
          <Empty title="No such token">No token has the id “{open}”.</Empty>
        ) : (
          <TokenDetail token={token} />
        )}
      </Sheet>
    </ListView>
  );
}

function TokenDetail({ token }: { readonly token: Token }) {
  const { id, name, state, scopes, tenant, createdAt, createdBy, expiresAt } = token;
  return (
    <div className="flex flex-col gap-4">
      {state === 'live' ? (
        <Actions
          refresh={['tokens']}
          actions={[
            {
              route: 'POST /admin/tokens/{token}/revoke',
              label: `Revoke ${name}`,
              icon: ShieldX,
              confirm:
                'Requests with this token are refused from now on, and its connections and sessions of the console end. This cannot be undone.',
              run: async () => {
                await call('POST /admin/tokens/{token}/revoke', { params: { token: id } });
                return 'Revoked.';
              },
            },
          ]}
        />
      ) : null}
      <Facts>
        <Fact name="State">
          <TokenState state={state} />
        </Fact>
        <Fact name="Scopes">
          <Scopes scopes={scopes} />
        </Fact>
        <Fact name="Tenant">{tenant ?? 'all tenants'}</Fact>
        <Fact name="Created">
          <Time at={createdAt} />
          {createdBy === undefined ? null : <span className="text-soft">by {createdBy}</span>}
        </Fact>
        <Fact name="Expires">{expiresAt === undefined ? 'never' : <Time at={expiresAt} />}</Fact>
        {token.revokedAt === undefined ? null : (
          <Fact name="Revoked">
            <Time at={token.revokedAt} />
            <span className="text-soft">by {token.revokedBy ?? 'unknown'}</span>
          </Fact>
        )}
        <Fact name="Id">
          <span className="mono break-all">{id}</span>
          <CopyButton text={id} label="Copy the id" />
        </Fact>
      </Facts>
    </div>
  );
}

// The command palette: goes to a view, or to whatever an id belongs to.

import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Activity, Search, type LucideIcon } from 'lucide-react';
import { useDeferredValue, useState, type KeyboardEvent } from 'react';
import { call, type ResponseOf } from './lib/api.ts';
import { countText } from './lib/format.ts';
import { useSession } from './lib/session.ts';
import { viewsFor } from './views.ts';
import { cx, Kbd } from './ui/parts.tsx';
import { Modal } from './ui/sheet.tsx';

type Match = ResponseOf<'GET /admin/resolve/{id}'>['items'][number];

interface Choice {
  readonly key: string;
  readonly icon: LucideIcon;
  readonly title: string;
  readonly about: string;
  readonly hint?: string | undefined;
  readonly go: () => void;
}

const kindNames: Readonly<Record<Match['kind'], string>> = {
  stream: 'Stream',
  trace: 'Trace',
  event: 'Event',
  delivery: 'Delivery',
  'dead-letter': 'Dead letter',
  'bus-dead-letter': 'Dead letter of the bus',
  failure: 'Cause of failures',
  saga: 'Saga',
  subscription: 'Subscription',
  job: 'Job',
  token: 'Token',
};

export function Palette({
  isOpen,
  onClose,
}: {
  readonly isOpen: boolean;
  readonly onClose: () => void;
}) {
  return (
    <Modal isOpen={isOpen} onClose={onClose} title="Go to" isTitleHidden>
      <PaletteContent onClose={onClose} />
    </Modal>
  );
}

function PaletteContent({ onClose }: { readonly onClose: () => void }) {
  const navigate = useNavigate();
  const session = useSession();
  const [text, setText] = useState('');
  const [active, setActive] = useState(0);
  const id = useDeferredValue(text.trim());
  const looksLikeId = id.length >= 3;
  const { data, isFetching } = useQuery({
    queryKey: ['resolve', id],
    queryFn: ({ signal }) => call('GET /admin/resolve/{id}', { params: { id }, signal }),
    enabled: looksLikeId,
    staleTime: 2_000,
  });
  const leave = (go: () => void) => () => {
    onClose();
    go();
  };
  const found: readonly Choice[] = (looksLikeId ? (data?.items ?? []) : []).map((match) => ({
    key: `${match.kind} ${match.id}`,
    icon: Activity,
    title: match.title,
    about: kindNames[match.kind],
    go: leave(() => void goToMatch(navigate, match)),
  }));
  const views: readonly Choice[] = viewsFor(session)
    .filter(({ title }) => title.toLowerCase().includes(text.trim().toLowerCase()))
    .map(({ title, path, keys, icon }) => ({
      key: path,
      icon,
      title,
      about: 'View',
      hint: keys,
      go: leave(() => void navigate({ to: path })),
    }));
  const choices = [...found, ...views];
  const at = Math.min(active, Math.max(0, choices.length - 1));
  const onKey = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      setActive((at + step + choices.length) % Math.max(1, choices.length));
    }
    if (event.key === 'Enter') choices[at]?.go();
  };
  return (
    <>
      <div className="flex items-center gap-3 border-b border-line px-4">
        <Search size={16} aria-hidden className="shrink-0 text-soft" />
        <input
          autoFocus
          role="combobox"
          aria-expanded
          aria-controls="palette"
          aria-activedescendant={choices.length === 0 ? undefined : `palette-${at}`}
          aria-label="Paste an id, or search a view"
          placeholder="Paste any id, or search a view"
          value={text}
          onChange={({ target }) => {
            setText(target.value);
            setActive(0);
          }}
          onKeyDown={onKey}
          className="h-12 w-full bg-transparent text-sm outline-none"
        />
        <Kbd>Esc</Kbd>
      </div>
      <div
        id="palette"
        role="listbox"
        aria-label="Results"
        className="min-h-0 flex-1 overflow-y-auto p-2"
      >
        {choices.map(({ key, icon: Icon, title, about, hint, go }, index) => (
          <div
            key={key}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === at}
            tabIndex={-1}
            onClick={go}
            onKeyDown={onKey}
            onPointerMove={() => setActive(index)}
            className={cx(
              'flex h-10 items-center gap-3 rounded-md px-3',
              index === at && 'bg-hover',
            )}
          >
            <Icon size={15} aria-hidden className="shrink-0 text-soft" />
            <span className="min-w-0 flex-1 truncate">{title}</span>
            <span className="text-2xs text-soft">{about}</span>
            {hint === undefined ? null : <Kbd>{hint}</Kbd>}
          </div>
        ))}
      </div>
      {looksLikeId && choices.length === 0 ? (
        <p role="status" className="border-t border-line px-4 py-3 text-xs text-soft">
          {isFetching || data === undefined
            ? 'Searching…'
            : `Nothing has the id “${id}”. Searched: streams, flows, deliveries, dead letters, causes of failures, subscriptions, jobs, tokens, the ids of the newest ${countText(data.eventsSearched)} events, and the keys of ${countText(data.sagasSearched)} sagas.`}
        </p>
      ) : null}
    </>
  );
}

type Navigate = ReturnType<typeof useNavigate>;

function goToMatch(navigate: Navigate, match: Match): Promise<void> {
  const { kind, id, stream, revision, correlationId, fingerprint } = match;
  if (kind === 'stream' && stream !== undefined) {
    return navigate({ to: '/streams/$stream', params: { stream } });
  }
  if (kind === 'event' && stream !== undefined) {
    return navigate({ to: '/streams/$stream', params: { stream }, search: { at: revision } });
  }
  if (kind === 'subscription') return navigate({ to: '/subscriptions', search: { open: id } });
  if (kind === 'job') return navigate({ to: '/jobs', search: { open: id } });
  if (kind === 'delivery') return navigate({ to: '/deliveries', search: { open: id } });
  if (kind === 'token') return navigate({ to: '/tokens', search: { open: id } });
  if (kind === 'failure' || kind === 'bus-dead-letter') {
    return navigate({ to: '/failures', search: { state: 'all', group: fingerprint } });
  }
  if (kind === 'saga' && stream !== undefined) {
    if (correlationId === undefined) {
      return navigate({ to: '/streams/$stream', params: { stream } });
    }
    const search = { view: 'explain', node: `saga ${stream}` } as const;
    return navigate({ to: '/traces/$id', params: { id: correlationId }, search });
  }
  return navigate({ to: '/traces/$id', params: { id: correlationId ?? id } });
}

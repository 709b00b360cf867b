// The filters of the list of events. What is set is in the address.

import { SlidersHorizontal, X } from 'lucide-react';
import { useEffect, useState, type FormEvent } from 'react';
import { ApiError } from '../lib/api.ts';
import { useSession } from '../lib/session.ts';
import type { EventSearch } from '../router.tsx';
import { Choices } from '../ui/filters.tsx';
import { Button, cx } from '../ui/parts.tsx';

export const noFilter = {
  type: undefined,
  category: undefined,
  tenant: undefined,
  stream: undefined,
  flow: undefined,
  payload: undefined,
  since: undefined,
  from: undefined,
  until: undefined,
  sel: undefined,
} as const satisfies EventSearch;

/** `parameter` is the name of the field in problems of the server. */
const first = [
  {
    name: 'type',
    title: 'Type',
    example: 'payment.completed.v1, or its start',
    parameter: 'types',
  },
  { name: 'category', title: 'Category', example: 'payments.payment.v1', parameter: 'category' },
  { name: 'tenant', title: 'Tenant', example: 'core', parameter: 'tenant' },
] as const;
const more = [
  { name: 'stream', title: 'Stream', example: 'shop.order.v1-core-7', parameter: 'stream' },
  { name: 'flow', title: 'Correlation id', example: 'checkout-7', parameter: 'correlationId' },
  { name: 'payload', title: 'Payload', example: 'customer.id = c-7', parameter: 'payload' },
] as const;
const texts = [...first, ...more];

type Field = (typeof texts)[number];
type Draft = Readonly<Record<Field['name'], string>>;

const spans = [
  { value: undefined, title: 'any time' },
  { value: '15m', title: '15 min' },
  { value: '1h', title: '1 h' },
  { value: '24h', title: '24 h' },
  { value: '7d', title: '7 days' },
  { value: 'exact', title: 'exact' },
] as const;

export function EventFilters({
  search,
  onChange,
  error,
}: {
  readonly search: EventSearch;
  readonly onChange: (change: Partial<EventSearch>) => void;
  readonly error: Error | null;
}) {
  const given = JSON.stringify(texts.map(({ name }) => search[name] ?? ''));
  const [draft, setDraft] = useState<Draft>(() => draftOf(search));
  useEffect(() => setDraft(draftOf(search)), [given]);
  const { since, from, until } = search;
  const hasTimes = (from ?? until) !== undefined;
  const hasMore =
    hasTimes || (since ?? search.stream ?? search.flow ?? search.payload) !== undefined;
  const [isOpen, setOpen] = useState(hasMore);
  const [isExact, setExact] = useState(hasTimes);
  const isFiltered = texts.some(({ name }) => search[name] !== undefined) || hasMore;
  const badField = badFieldOf(error);
  const { isMasked = false } = useSession();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const filled = texts.map(({ name }) => [name, draft[name].trim() || undefined] as const);
    onChange({ ...Object.fromEntries(filled), sel: undefined });
  };
  const fieldOf = (field: Field, at: number) => (
    <TextField
      key={field.name}
      field={field}
      isFirst={at === 0}
      isBad={badField === field.parameter}
      value={draft[field.name]}
      onChange={(value) => setDraft({ ...draft, [field.name]: value })}
    />
  );
  return (
    <form onSubmit={submit} className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center gap-2">
        {first.map(fieldOf)}
        <Button
          aria-expanded={isOpen}
          look={hasMore && !isOpen ? 'primary' : 'plain'}
          onClick={() => setOpen(!isOpen)}
        >
          <SlidersHorizontal size={13} aria-hidden />
          More
        </Button>
        <Button type="submit">Filter</Button>
        {isFiltered ? (
          <Button
            look="quiet"
            onClick={() => {
              setExact(false);
              onChange(noFilter);
            }}
          >
            <X size={13} aria-hidden />
            Clear
          </Button>
        ) : null}
      </div>
      {isOpen ? (
        <div className="flex flex-wrap items-center gap-2">
          <Choices
            label="Time"
            value={since ?? (isExact || hasTimes ? 'exact' : undefined)}
            choices={spans}
            onChange={(value) => {
              setExact(value === 'exact');
              if (value === 'exact') return;
              onChange({ since: value, from: undefined, until: undefined, sel: undefined });
            }}
          />
          {(isExact || hasTimes) && since === undefined ? (
            <>
              <TimeField
                name="From"
                value={from}
                isBad={badField === 'from'}
                onChange={(value) => onChange({ from: value, sel: undefined })}
              />
              <TimeField
                name="Until"
                value={until}
                isBad={badField === 'until'}
                onChange={(value) => onChange({ until: value, sel: undefined })}
              />
            </>
          ) : null}
          {more
            .filter(({ name }) => name !== 'payload' || !isMasked)
            .map((field) => fieldOf(field, -1))}
        </div>
      ) : null}
      {badField === undefined ? null : (
        <p role="alert" className="text-xs text-bad">
          {error?.message}
        </p>
      )}
    </form>
  );
}

/** The field of the filter that the server refused. */
export function badFieldOf(error: Error | null): string | undefined {
  const details = error instanceof ApiError ? error.problem?.details : undefined;
  const field = details?.['field'];
  return typeof field === 'string' && error instanceof ApiError && error.status === 400
    ? field
    : undefined;
}

function draftOf(search: EventSearch): Draft {
  const entries = texts.map(({ name }) => [name, search[name] ?? ''] as const);
  return Object.fromEntries(entries) as Draft;
}

const inputStyle = 'h-8 min-w-0 rounded-md border bg-panel px-3 text-xs hover:border-strong';

function TextField({
  field: { name, title, example },
  isFirst,
  isBad,
  value,
  onChange,
}: {
  readonly field: Field;
  readonly isFirst: boolean;
  readonly isBad: boolean;
  readonly value: string;
  readonly onChange: (value: string) => void;
}) {
  const hint = `${title}: ${example}`;
  return (
    <input
      aria-label={title}
      aria-invalid={isBad}
      placeholder={hint}
      title={hint}
      data-filter={isFirst ? '' : undefined}
      value={value}
      onChange={({ target }) => onChange(target.value)}
      onKeyDown={({ key, currentTarget }) => key === 'Escape' && currentTarget.blur()}
      className={cx(
        inputStyle,
        isBad ? 'border-bad' : 'border-line',
        name === 'tenant' ? 'w-28' : 'flex-1 basis-40',
      )}
    />
  );
}

/** Local time; the address has UTC. */
function TimeField({
  name,
  value,
  isBad,
  onChange,
}: {
  readonly name: string;
  readonly value: string | undefined;
  readonly isBad: boolean;
  readonly onChange: (value: string | undefined) => void;
}) {
  const [draft, setDraft] = useState(localOf(value));
  useEffect(() => setDraft(localOf(value)), [value]);
  return (
    <label className="flex items-center gap-1.5 text-2xs text-soft">
      {name}
      <input
        type="datetime-local"
        step={1}
        aria-invalid={isBad}
        value={draft}
        title={value === undefined ? 'Local time' : `${value} (UTC)`}
        onChange={({ target }) => setDraft(target.value)}
        onBlur={() => {
          const at = new Date(draft);
          const next = Number.isNaN(at.getTime()) ? undefined : at.toISOString();
          if (next !== value) onChange(next);
        }}
        onKeyDown={({ key, currentTarget }) => key === 'Enter' && currentTarget.blur()}
        className={cx(inputStyle, 'text-text', isBad ? 'border-bad' : 'border-line')}
      />
    </label>
  );
}

/** `2026-11-18T12:00:00`, as the input field needs it. */
function localOf(iso: string | undefined): string {
  const at = new Date(iso ?? '');
  if (Number.isNaN(at.getTime())) return '';
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19);
}

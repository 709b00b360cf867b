// The filters of list views. Their values are in the address.

import { X } from 'lucide-react';
import { useEffect, useState, type FormEvent, type ReactNode } from 'react';
import { countText } from '../lib/format.ts';
import { Button, cx } from './parts.tsx';

/** Choices above text fields. */
export function FilterBar({
  choices,
  children,
}: {
  readonly choices: ReactNode;
  readonly children: ReactNode;
}) {
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap gap-3">{choices}</div>
      {children}
    </div>
  );
}

/** One of a few values, with the number of rows that each has. */
export function Choices<Value extends string>({
  label,
  choices,
  value,
  onChange,
}: {
  readonly label: string;
  readonly choices: readonly {
    readonly value: Value | undefined;
    readonly title: string;
    readonly count?: number | undefined;
  }[];
  readonly value: Value | undefined;
  readonly onChange: (value: Value | undefined) => void;
}) {
  return (
    <div
      role="group"
      aria-label={label}
      className="flex max-w-full flex-wrap gap-0.5 self-start rounded-lg border border-line bg-sunken p-0.5"
    >
      {choices.map((each) => {
        const isChosen = each.value === value;
        return (
          <button
            key={each.title}
            type="button"
            aria-pressed={isChosen}
            onClick={() => onChange(each.value)}
            className={cx(
              'flex h-7 items-center gap-1.5 rounded-md px-2.5 text-xs whitespace-nowrap',
              isChosen ? 'bg-accent-wash font-medium text-accent' : 'text-soft hover:text-text',
            )}
          >
            {each.title}
            {'count' in each ? (
              // A figure space while the number is not known, so that it moves nothing when it comes.
              <span className="text-2xs">
                {each.count === undefined ? '\u2007' : countText(each.count)}
              </span>
            ) : null}
          </button>
        );
      })}
    </div>
  );
}

interface TextField<Name extends string> {
  readonly name: Name;
  readonly title: string;
  readonly example: string;
}

/** Text fields that filter when they are submitted. */
export function TextFilters<Name extends string>({
  fields,
  values,
  onChange,
}: {
  readonly fields: readonly TextField<Name>[];
  readonly values: Readonly<Partial<Record<Name, string | undefined>>>;
  readonly onChange: (values: Readonly<Record<Name, string | undefined>>) => void;
}) {
  const given = JSON.stringify(fields.map(({ name }) => values[name] ?? ''));
  const [draft, setDraft] = useState<readonly string[]>(() => JSON.parse(given) as string[]);
  useEffect(() => setDraft(JSON.parse(given) as string[]), [given]);
  const apply = (texts: readonly string[]): void => {
    const entries = fields.map(({ name }, at) => [name, texts[at]?.trim() || undefined] as const);
    onChange(Object.fromEntries(entries) as Record<Name, string | undefined>);
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    apply(draft);
  };
  return (
    <form onSubmit={submit} className="flex min-w-0 flex-1 flex-wrap items-center gap-2">
      {fields.map(({ name, title, example }, at) => (
        <input
          key={name}
          aria-label={title}
          placeholder={`${title}: ${example}`}
          data-filter={at === 0 ? '' : undefined}
          value={draft[at] ?? ''}
          onChange={({ target }) => setDraft(draft.with(at, target.value))}
          onKeyDown={({ key, currentTarget }) => key === 'Escape' && currentTarget.blur()}
          className="h-8 min-w-0 flex-1 basis-36 rounded-md border border-line bg-panel px-3 text-xs hover:border-strong"
        />
      ))}
      <Button type="submit">Filter</Button>
      {given.replaceAll(/["[\],]/g, '') === '' ? null : (
        <Button look="quiet" onClick={() => apply([])}>
          <X size={13} aria-hidden />
          Clear
        </Button>
      )}
    </form>
  );
}

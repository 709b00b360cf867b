// Buttons that change something. A button exists only if the session may call its route; the server checks it as well.

import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { LucideIcon } from 'lucide-react';
import { useState } from 'react';
import type { RouteName } from '../lib/api.ts';
import { allows, useSession } from '../lib/session.ts';
import { Button, ChangeButton, cx } from './parts.tsx';
import { Modal } from './sheet.tsx';

export interface Action {
  readonly route: RouteName;
  readonly label: string;
  readonly icon: LucideIcon;
  readonly isMain?: boolean;
  /** Asks before it acts, with this text. */
  readonly confirm?: string;
  /** Asks for a text as well, with this label. */
  readonly asks?: string;
  /** Returns what happened. */
  readonly run: (text: string) => Promise<string>;
}

export function Actions({
  actions,
  refresh,
  isInRow = false,
}: {
  readonly actions: readonly Action[];
  /** The first part of the keys of the queries that change. */
  readonly refresh: readonly string[];
  /** The row shows what has changed, and must not become taller. */
  readonly isInRow?: boolean;
}) {
  const session = useSession();
  const client = useQueryClient();
  const [asked, setAsked] = useState<Action>();
  const [text, setText] = useState('');
  const { mutate, isPending, data, error } = useMutation({
    mutationFn: ({ run }: Action) => run(text.trim()),
    onSettled: () => {
      setAsked(undefined);
      setText('');
      for (const key of refresh) void client.invalidateQueries({ queryKey: [key] });
    },
  });
  const allowed = actions.filter(({ route }) => allows(session, route));
  if (allowed.length === 0 && data === undefined && error === null) return null;
  return (
    <div className="relative z-10 flex flex-col gap-2">
      <div className={cx('flex flex-wrap gap-2', isInRow && 'justify-end')}>
        {allowed.map((action) => {
          const { route, label, icon: Icon, isMain = false, confirm } = action;
          return (
            <ChangeButton
              key={label}
              data-route={route}
              look={isMain ? 'primary' : 'plain'}
              disabled={isPending}
              onClick={() => (confirm === undefined ? mutate(action) : setAsked(action))}
            >
              <Icon size={14} aria-hidden />
              {label}
              {confirm === undefined ? '' : '…'}
            </ChangeButton>
          );
        })}
      </div>
      {data === undefined ? null : (
        <p
          role="status"
          className={isInRow ? 'sr-only' : 'rounded-md bg-good-wash px-3 py-2 text-xs text-good'}
        >
          {data}
        </p>
      )}
      {error === null ? null : (
        <p role="alert" className="rounded-md bg-bad-wash px-3 py-2 text-xs text-bad">
          {error.message}
        </p>
      )}
      <Modal
        isOpen={asked !== undefined}
        onClose={() => setAsked(undefined)}
        title={`${asked?.label ?? ''}?`}
      >
        <form
          className="flex flex-col gap-4 p-4"
          onSubmit={(event) => {
            event.preventDefault();
            if (asked !== undefined) mutate(asked);
          }}
        >
          <p className="text-xs text-soft">{asked?.confirm}</p>
          {asked?.asks === undefined ? null : (
            <label className="flex flex-col gap-1.5 text-xs font-medium">
              {asked.asks}
              <input
                required
                maxLength={2_000}
                value={text}
                onChange={({ target }) => setText(target.value)}
                className="h-9 rounded-md border border-strong bg-page px-3 font-normal"
              />
            </label>
          )}
          <div className="flex justify-end gap-2">
            <Button onClick={() => setAsked(undefined)}>Back</Button>
            <ChangeButton
              autoFocus={asked?.asks === undefined}
              type="submit"
              look="primary"
              disabled={isPending || (asked?.asks !== undefined && text.trim() === '')}
            >
              {asked?.label}
            </ChangeButton>
          </div>
        </form>
      </Modal>
    </div>
  );
}

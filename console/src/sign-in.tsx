// Sign-in with a token, or by the one-time link in the fragment of the address.

import { useMutation } from '@tanstack/react-query';
import { Waves } from 'lucide-react';
import { useEffect, useState, type FormEvent } from 'react';
import { call } from './lib/api.ts';
import { Button } from './ui/parts.tsx';
import { Command } from './ui/states.tsx';

/** Removed from the address at once, so that it does not stay in the history. */
const linkCode = takeLinkCode();

function takeLinkCode(): string | undefined {
  const code = /^#link=([\w-]+)$/.exec(location.hash)?.[1];
  if (code !== undefined) history.replaceState(null, '', location.pathname + location.search);
  return code;
}

let isLinkUsed = false;

export function SignIn({
  onDone,
  notice,
}: {
  readonly onDone: () => void;
  readonly notice?: string | undefined;
}) {
  const [token, setToken] = useState('');
  const { mutate, isPending, error } = useMutation({
    mutationFn: (body: { readonly token?: string; readonly link?: string }) =>
      call('POST /console/session', { body }),
    onSuccess: onDone,
  });
  useEffect(() => {
    if (linkCode === undefined || isLinkUsed) return;
    isLinkUsed = true;
    mutate({ link: linkCode });
  }, [mutate]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    mutate({ token });
  };
  const problem = error === null ? notice : error.message;
  return (
    <main className="flex min-h-full items-center justify-center p-4">
      <div className="w-full max-w-sm">
        <div className="mb-6 flex items-center gap-2.5">
          <span className="flex size-9 items-center justify-center rounded-lg bg-accent text-on-accent">
            <Waves size={20} aria-hidden />
          </span>
          <div>
            <h1 className="text-base leading-5 font-semibold tracking-tight">Millrace</h1>
            <p className="text-xs text-soft">Console</p>
          </div>
        </div>
        <form
          onSubmit={submit}
          className="flex flex-col gap-3 rounded-xl border border-line bg-panel p-5"
        >
          <label htmlFor="token" className="text-xs font-medium">
            API token or JWT
          </label>
          <input
            id="token"
            type="password"
            autoComplete="off"
            autoFocus
            required
            value={token}
            onChange={({ target }) => setToken(target.value)}
            placeholder="mr_…"
            className="mono h-9 rounded-md border border-strong bg-page px-3"
          />
          {problem === undefined ? null : (
            <p
              role="alert"
              className="rounded-md bg-bad-wash px-3 py-2 text-xs text-bad first-letter:uppercase"
            >
              {problem}
            </p>
          )}
          <Button type="submit" look="primary" disabled={isPending || token === ''} className="h-9">
            {isPending ? 'Signing in…' : 'Sign in'}
          </Button>
          <p className="text-xs text-soft">
            The token is exchanged for a session of at most 12 hours and is not stored.
          </p>
        </form>
        <div className="mt-5 flex flex-col gap-2 text-xs text-soft">
          <p>Or create a link that signs in once:</p>
          <Command text="npm run millrace -- console link" />
        </div>
      </div>
    </main>
  );
}

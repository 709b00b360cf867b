// Starts the console: sign-in without a session, the views with one.

import { CSPProvider } from '@base-ui/react/csp-provider';
import { QueryClient, QueryClientProvider, useQuery, useQueryClient } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode, useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { ApiError, call } from './lib/api.ts';
import { live } from './lib/live.ts';
import { SessionContext } from './lib/session.ts';
import { applyTheme } from './lib/theme.ts';
import { router, SignedOutContext } from './router.tsx';
import { SignIn } from './sign-in.tsx';
import { Button } from './ui/parts.tsx';

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // Problems of the request do not go away by themselves.
      retry: (failures, error) => !(error instanceof ApiError) && failures < 2,
      refetchOnWindowFocus: false,
    },
  },
});

function App() {
  const client = useQueryClient();
  const [notice, setNotice] = useState<string>();
  const { data, error, refetch } = useQuery({
    queryKey: ['session'],
    queryFn: () => call('GET /console/session'),
  });
  useEffect(
    () =>
      live.onEnded(() => {
        setNotice('The session has ended: it has expired, or its token was revoked.');
        void client.resetQueries({ queryKey: ['session'] });
      }),
    [client],
  );
  const start = (): void => {
    setNotice(undefined);
    client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' });
    void client.resetQueries({ queryKey: ['session'] });
  };
  if (data === undefined) {
    if (error === null) return null;
    return (
      <main className="flex min-h-full flex-col items-center justify-center gap-3 p-6 text-center">
        <h1 className="text-base font-semibold">The server does not respond</h1>
        <p className="text-soft">{error.message}</p>
        <Button onClick={() => void refetch()}>Try again</Button>
      </main>
    );
  }
  const { session } = data;
  if (session === null) return <SignIn onDone={start} notice={notice} />;
  return (
    <SessionContext value={session}>
      <SignedOutContext value={start}>
        <RouterProvider router={router} />
      </SignedOutContext>
    </SessionContext>
  );
}

applyTheme();
// A relative address would change with the path of the page.
const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]');
icon?.setAttribute('href', icon.href);
const container = document.querySelector('#root');
if (container !== null) {
  createRoot(container).render(
    <StrictMode>
      <CSPProvider disableStyleElements>
        <QueryClientProvider client={queries}>
          <App />
        </QueryClientProvider>
      </CSPProvider>
    </StrictMode>,
  );
}

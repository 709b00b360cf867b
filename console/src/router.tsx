// The addresses of the views. Filters and selections are in the address, so every state is a link.

import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
} from '@tanstack/react-router';
import { createContext, use } from 'react';
import { consoleUrl } from './lib/api.ts';
import { Shell } from './shell.tsx';
import { Empty } from './ui/states.tsx';

export const SignedOutContext = createContext<() => void>(() => undefined);

function Root() {
  return <Shell onSignedOut={use(SignedOutContext)} />;
}

const root = createRootRoute({
  component: Root,
  notFoundComponent: () => <Empty title="There is no such page" />,
});

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

export interface EventSearch {
  readonly type?: string | undefined;
  readonly category?: string | undefined;
  readonly tenant?: string | undefined;
  /** The position of the open event. */
  readonly sel?: string | undefined;
  readonly live?: boolean | undefined;
}

interface StreamSearch {
  /** The revision of the open event. */
  readonly at?: number | undefined;
}

export interface TraceSearch {
  readonly view?: 'list' | undefined;
  readonly node?: string | undefined;
  readonly only?: 'failures' | undefined;
}

interface FailureSearch {
  /** The fingerprint of the open group. */
  readonly group?: string | undefined;
}

const overview = createRoute({
  getParentRoute: () => root,
  path: '/',
  component: lazyRouteComponent(() => import('./views/overview.tsx'), 'OverviewView'),
});

const events = createRoute({
  getParentRoute: () => root,
  path: '/events',
  validateSearch: (search: Record<string, unknown>): EventSearch => ({
    type: text(search['type']),
    category: text(search['category']),
    tenant: text(search['tenant']),
    sel: text(search['sel']),
    live: search['live'] === true ? true : undefined,
  }),
  component: lazyRouteComponent(() => import('./views/events.tsx'), 'EventsView'),
});

const stream = createRoute({
  getParentRoute: () => root,
  path: '/streams/$stream',
  validateSearch: (search: Record<string, unknown>): StreamSearch => ({
    at: typeof search['at'] === 'number' ? search['at'] : undefined,
  }),
  component: lazyRouteComponent(() => import('./views/stream.tsx'), 'StreamView'),
});

const traces = createRoute({
  getParentRoute: () => root,
  path: '/traces',
  component: lazyRouteComponent(() => import('./views/traces.tsx'), 'TracesView'),
});

const trace = createRoute({
  getParentRoute: () => root,
  path: '/traces/$id',
  validateSearch: (search: Record<string, unknown>): TraceSearch => ({
    view: search['view'] === 'list' ? 'list' : undefined,
    node: text(search['node']),
    only: search['only'] === 'failures' ? 'failures' : undefined,
  }),
  component: lazyRouteComponent(() => import('./views/trace.tsx'), 'TraceView'),
});

const failures = createRoute({
  getParentRoute: () => root,
  path: '/failures',
  validateSearch: (search: Record<string, unknown>): FailureSearch => ({
    group: text(search['group']),
  }),
  component: lazyRouteComponent(() => import('./views/failures.tsx'), 'FailuresView'),
});

export const router = createRouter({
  routeTree: root.addChildren([overview, events, stream, traces, trace, failures]),
  basepath: consoleUrl.pathname,
  defaultPreload: 'intent',
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}

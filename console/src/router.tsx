// The addresses of the views. Filters and selections are in the address, so every state is a link.

import type { BulkSearch } from './ui/bulk-window.tsx';
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Link,
} from '@tanstack/react-router';
import { createContext, use } from 'react';
import { consoleUrl } from './lib/api.ts';
import { Shell } from './shell.tsx';
import { jobStates } from './lib/list.ts';
import { kindNames } from './lib/trace-rows.ts';
import { cx, linkStyle, PageTitle } from './ui/parts.tsx';
import { NotFound } from './ui/states.tsx';

export const SignedOutContext = createContext<() => void>(() => undefined);

function Root() {
  return <Shell onSignedOut={use(SignedOutContext)} />;
}

function NoSuchPage() {
  return (
    <div className="p-4 sm:p-6">
      <PageTitle title="There is no such page" />
      <NotFound title={location.pathname}>
        The address may be mistyped.{' '}
        <Link to="/" className={cx('underline', linkStyle)}>
          Go to the overview
        </Link>
      </NotFound>
    </div>
  );
}

const root = createRootRoute({
  component: Root,
  notFoundComponent: NoSuchPage,
});

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

export const timeSpans = { '15m': 900_000, '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000 };

export interface EventSearch {
  readonly type?: string | undefined;
  readonly category?: string | undefined;
  readonly tenant?: string | undefined;
  readonly stream?: string | undefined;
  readonly flow?: string | undefined;
  /** `path=value`. */
  readonly payload?: string | undefined;
  /** How far back, instead of exact times. */
  readonly since?: keyof typeof timeSpans | undefined;
  /** ISO 8601. */
  readonly from?: string | undefined;
  readonly until?: string | undefined;
  /** The open event: `<stream>@<revision>`. */
  readonly sel?: string | undefined;
  readonly live?: boolean | undefined;
}

export interface StreamSearch {
  /** The revision of the open event, as it was typed. */
  readonly at?: number | string | undefined;
}

export interface TraceSearch {
  readonly view?: 'explain' | 'list' | undefined;
  readonly node?: string | undefined;
  readonly only?: 'failures' | undefined;
  readonly kind?: keyof typeof kindNames | undefined;
  readonly text?: string | undefined;
  /** Nothing is folded. */
  readonly all?: boolean | undefined;
}

export interface TracesSearch {
  readonly show?: 'failed' | 'slow' | undefined;
}

export interface FailureSearch extends BulkSearch {
  /** The fingerprint of the open group. */
  readonly group?: string | undefined;
  readonly show?: 'parked' | undefined;
  /** The dead letter of the open stream. */
  readonly open?: string | undefined;
  readonly stream?: string | undefined;
  readonly source?: (typeof failureSources)[number] | undefined;
  readonly state?: (typeof failureStates)[number] | undefined;
  readonly where?: string | undefined;
  readonly type?: string | undefined;
  readonly tenant?: string | undefined;
}

const deliveryStates = ['PENDING', 'CLAIMED', 'SENT', 'FAILED', 'DEAD', 'DISCARDED'] as const;
const failureSources = ['dead-letter', 'delivery', 'job', 'bus', 'saga'] as const;
const failureStates = ['resolved', 'ignored', 'all'] as const;
const subscriptionStates = ['lost', 'paused', 'running', 'stopped'] as const;

/** `open` is the row whose details are shown. */
export interface OpenSearch {
  readonly open?: string | undefined;
}

export interface SubscriptionSearch extends OpenSearch {
  readonly state?: (typeof subscriptionStates)[number] | undefined;
}

export interface JobSearch extends OpenSearch {
  readonly show?: 'types' | 'workers' | undefined;
  readonly state?: (typeof jobStates)[number] | undefined;
  readonly type?: string | undefined;
  readonly tenant?: string | undefined;
}

export interface DeliverySearch extends OpenSearch {
  readonly show?: 'destinations' | undefined;
  readonly status?: (typeof deliveryStates)[number] | undefined;
  readonly destination?: string | undefined;
  readonly tenant?: string | undefined;
}

export interface AuditSearch extends OpenSearch {
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
}

type Search = Record<string, unknown>;

const oneOf = <Value extends string>(values: readonly Value[], value: unknown): Value | undefined =>
  values.find((each) => each === value);

const overview = createRoute({
  getParentRoute: () => root,
  path: '/',
  component: lazyRouteComponent(() => import('./views/overview.tsx'), 'OverviewView'),
});

const events = createRoute({
  getParentRoute: () => root,
  path: '/events',
  validateSearch: (search: Search): EventSearch => ({
    type: text(search['type']),
    category: text(search['category']),
    tenant: text(search['tenant']),
    stream: text(search['stream']),
    flow: text(search['flow']),
    payload: text(search['payload']),
    since: oneOf(['15m', '1h', '24h', '7d'], search['since']),
    from: text(search['from']),
    until: text(search['until']),
    sel: text(search['sel']),
    live: search['live'] === true ? true : undefined,
  }),
  component: lazyRouteComponent(() => import('./views/events.tsx'), 'EventsView'),
});

const stream = createRoute({
  getParentRoute: () => root,
  path: '/streams/$stream',
  validateSearch: (search: Search): StreamSearch => ({
    at: typeof search['at'] === 'number' ? search['at'] : text(search['at']),
  }),
  component: lazyRouteComponent(() => import('./views/stream.tsx'), 'StreamView'),
});

const traces = createRoute({
  getParentRoute: () => root,
  path: '/traces',
  validateSearch: (search: Search): TracesSearch => ({
    show: oneOf(['failed', 'slow'], search['show']),
  }),
  component: lazyRouteComponent(() => import('./views/traces.tsx'), 'TracesView'),
});

const trace = createRoute({
  getParentRoute: () => root,
  path: '/traces/$id',
  validateSearch: (search: Search): TraceSearch => ({
    view: oneOf(['explain', 'list'], search['view']),
    node: text(search['node']),
    only: search['only'] === 'failures' ? 'failures' : undefined,
    kind: oneOf(Object.keys(kindNames) as (keyof typeof kindNames)[], search['kind']),
    text: text(search['text']),
    all: search['all'] === true ? true : undefined,
  }),
  component: lazyRouteComponent(() => import('./views/trace.tsx'), 'TraceView'),
});

const failures = createRoute({
  getParentRoute: () => root,
  path: '/failures',
  validateSearch: (search: Search): FailureSearch => ({
    group: text(search['group']),
    show: oneOf(['parked'], search['show']),
    open: text(search['open']),
    stream: text(search['stream']),
    source: oneOf(failureSources, search['source']),
    state: oneOf(failureStates, search['state']),
    where: text(search['where']),
    type: text(search['type']),
    tenant: text(search['tenant']),
    all: oneOf(['replay', 'retry', 'discard'], search['all']),
    bulk: text(search['bulk']),
  }),
  component: lazyRouteComponent(() => import('./views/failures.tsx'), 'FailuresView'),
});

const deliveries = createRoute({
  getParentRoute: () => root,
  path: '/deliveries',
  validateSearch: (search: Search): DeliverySearch => ({
    show: oneOf(['destinations'], search['show']),
    status: oneOf(deliveryStates, search['status']),
    destination: text(search['destination']),
    tenant: text(search['tenant']),
    open: text(search['open']),
  }),
  component: lazyRouteComponent(() => import('./views/deliveries.tsx'), 'DeliveriesView'),
});

const subscriptions = createRoute({
  getParentRoute: () => root,
  path: '/subscriptions',
  validateSearch: (search: Search): SubscriptionSearch => ({
    state: oneOf(subscriptionStates, search['state']),
    open: text(search['open']),
  }),
  component: lazyRouteComponent(() => import('./views/subscriptions.tsx'), 'SubscriptionsView'),
});

const projections = createRoute({
  getParentRoute: () => root,
  path: '/projections',
  validateSearch: (search: Search): OpenSearch => ({ open: text(search['open']) }),
  component: lazyRouteComponent(() => import('./views/projections.tsx'), 'ProjectionsView'),
});

const jobs = createRoute({
  getParentRoute: () => root,
  path: '/jobs',
  validateSearch: (search: Search): JobSearch => ({
    show: oneOf(['types', 'workers'], search['show']),
    state: oneOf(jobStates, search['state']),
    type: text(search['type']),
    tenant: text(search['tenant']),
    open: text(search['open']),
  }),
  component: lazyRouteComponent(() => import('./views/jobs.tsx'), 'JobsView'),
});

const system = createRoute({
  getParentRoute: () => root,
  path: '/system',
  component: lazyRouteComponent(() => import('./views/system.tsx'), 'SystemView'),
});

const tokens = createRoute({
  getParentRoute: () => root,
  path: '/tokens',
  validateSearch: (search: Search): OpenSearch => ({ open: text(search['open']) }),
  component: lazyRouteComponent(() => import('./views/tokens.tsx'), 'TokensView'),
});

const audit = createRoute({
  getParentRoute: () => root,
  path: '/audit',
  validateSearch: (search: Search): AuditSearch => ({
    actor: text(search['actor']),
    action: text(search['action']),
    open: text(search['open']),
  }),
  component: lazyRouteComponent(() => import('./views/audit.tsx'), 'AuditView'),
});

export const router = createRouter({
  routeTree: root.addChildren([
    overview,
    events,
    stream,
    traces,
    trace,
    failures,
    deliveries,
    subscriptions,
    projections,
    jobs,
    system,
    tokens,
    audit,
  ]),
  basepath: consoleUrl.pathname,
  defaultPreload: 'intent',
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}

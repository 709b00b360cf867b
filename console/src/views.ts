// The views of the navigation, and the route that each of them needs.

import {
  Activity,
  ClipboardList,
  Cog,
  Database,
  Inbox,
  KeyRound,
  LayoutDashboard,
  ListTree,
  ScrollText,
  Send,
  Server,
  type LucideIcon,
} from 'lucide-react';
import type { RouteName } from './lib/api.ts';
import { allows, type Session } from './lib/session.ts';

export interface View {
  readonly group: 'Explore' | 'Fix' | 'Govern' | 'Run' | 'Watch';
  readonly title: string;
  readonly path: (typeof consoleViews)[number]['path'];
  readonly keys: string;
  readonly icon: LucideIcon;
  readonly needs: RouteName;
}

export const consoleViews = [
  {
    group: 'Watch',
    title: 'Overview',
    path: '/',
    keys: 'g o',
    icon: LayoutDashboard,
    needs: 'GET /admin/overview',
  },
  {
    group: 'Explore',
    title: 'Events',
    path: '/events',
    keys: 'g e',
    icon: Activity,
    needs: 'GET /api/v1/events',
  },
  {
    group: 'Explore',
    title: 'Traces',
    path: '/traces',
    keys: 'g t',
    icon: ListTree,
    needs: 'GET /admin/traces/{correlationId}',
  },
  {
    group: 'Fix',
    title: 'Failures',
    path: '/failures',
    keys: 'g d',
    icon: Inbox,
    needs: 'GET /admin/failures',
  },
  {
    group: 'Fix',
    title: 'Deliveries',
    path: '/deliveries',
    keys: 'g v',
    icon: Send,
    needs: 'GET /admin/outbox',
  },
  {
    group: 'Run',
    title: 'Subscriptions',
    path: '/subscriptions',
    keys: 'g s',
    icon: ClipboardList,
    needs: 'GET /admin/subscriptions',
  },
  {
    group: 'Run',
    title: 'Projections',
    path: '/projections',
    keys: 'g p',
    icon: Database,
    needs: 'GET /admin/projections',
  },
  {
    group: 'Run',
    title: 'Jobs',
    path: '/jobs',
    keys: 'g k',
    icon: Cog,
    needs: 'GET /api/v1/jobs',
  },
  {
    group: 'Govern',
    title: 'System',
    path: '/system',
    keys: 'g h',
    icon: Server,
    needs: 'GET /admin/system',
  },
  {
    group: 'Govern',
    title: 'Tokens',
    path: '/tokens',
    keys: 'g y',
    icon: KeyRound,
    needs: 'GET /admin/tokens',
  },
  {
    group: 'Govern',
    title: 'Audit',
    path: '/audit',
    keys: 'g l',
    icon: ScrollText,
    needs: 'GET /admin/audit',
  },
] as const;

/** A view that the session may not see is not offered. */
export function viewsFor(session: Session): readonly View[] {
  return consoleViews.filter(({ needs }) => allows(session, needs));
}

// The views of the navigation, and the route that each of them needs.

import { Activity, Inbox, LayoutDashboard, ListTree, type LucideIcon } from 'lucide-react';
import type { RouteName } from './lib/api.ts';
import { allows, type Session } from './lib/session.ts';

export interface View {
  readonly group: 'Explore' | 'Fix' | 'Watch';
  readonly title: string;
  readonly path: '/' | '/events' | '/failures' | '/traces';
  readonly keys: string;
  readonly icon: LucideIcon;
  readonly needs: RouteName;
  /** It shows what all tenants share. */
  readonly isGlobal?: boolean;
}

const views: readonly View[] = [
  {
    group: 'Watch',
    title: 'Overview',
    path: '/',
    keys: 'g o',
    icon: LayoutDashboard,
    needs: 'GET /admin/overview',
    isGlobal: true,
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
];

/** A view that the session may not see is not offered. */
export function viewsFor(session: Session): readonly View[] {
  return views.filter(
    ({ needs, isGlobal }) =>
      allows(session, needs) && (isGlobal !== true || session.tenant === undefined),
  );
}

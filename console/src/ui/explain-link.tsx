// Opens the explanation of one node of a flow.

import { Link } from '@tanstack/react-router';
import { ListTree } from 'lucide-react';
import { allows, useSession } from '../lib/session.ts';

export function ExplainLink({ id, node }: { readonly id: string; readonly node: string }) {
  if (!allows(useSession(), 'GET /admin/traces/{correlationId}')) return null;
  return (
    <Link
      to="/traces/$id"
      params={{ id }}
      search={{ view: 'explain', node }}
      className="flex h-8 min-w-0 flex-1 items-center gap-2 rounded-md border border-line px-3 text-xs font-medium hover:bg-hover"
    >
      <ListTree size={15} aria-hidden className="shrink-0 text-accent" />
      <span className="truncate">
        What caused this<span className="max-sm:sr-only">, and what followed</span>
      </span>
    </Link>
  );
}

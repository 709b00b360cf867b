// Finds the route of a method and path. Segments are compared one by one, so no input is slow; a literal segment wins
// over a parameter.

import { MillraceError } from '../../foundation/error.ts';
import type { Method, Route } from '../../platform/modules/route.ts';

export interface RouteTable {
  /** Undefined: unknown path. `allow` without a route: the path exists for other methods. */
  find(
    method: string,
    path: string,
  ):
    | { readonly route: Route; readonly params: Readonly<Record<string, string>> }
    | { readonly allow: readonly Method[] }
    | undefined;
}

interface Node {
  readonly children: Map<string, Node>;
  any: Node | undefined;
  readonly routes: Map<string, { readonly route: Route; readonly names: readonly string[] }>;
}

export function createRouteTable(routes: readonly Route[]): RouteTable {
  const root = emptyNode();
  for (const route of routes) add(root, route);
  return {
    find(method, path) {
      const values: string[] = [];
      const node = walk(root, segmentsOf(path), 0, values);
      if (node === undefined) return undefined;
      const found =
        node.routes.get(method) ?? (method === 'HEAD' ? node.routes.get('GET') : undefined);
      if (found === undefined) return { allow: [...node.routes.keys()] as Method[] };
      const { route, names } = found;
      const params = names.map((name, at): [string, string] => [name, decode(values[at] ?? '')]);
      return { route, params: Object.fromEntries(params) };
    },
  };
}

/** Whether one request could match both routes. */
export function routesOverlap(one: Route, other: Route): boolean {
  const [ours, theirs] = [segmentsOf(one.path), segmentsOf(other.path)];
  return (
    one.method === other.method &&
    ours.length === theirs.length &&
    ours.every((segment, at) => {
      const another = theirs[at] ?? '';
      return segment === another || segment.startsWith('{') || another.startsWith('{');
    })
  );
}

function add(root: Node, route: Route): void {
  let node = root;
  const names: string[] = [];
  for (const segment of segmentsOf(route.path)) {
    const name = /^\{(\w+)\}$/.exec(segment)?.[1];
    if (name === undefined) {
      const child = node.children.get(segment) ?? emptyNode();
      node.children.set(segment, child);
      node = child;
    } else {
      names.push(name);
      node.any ??= emptyNode();
      node = node.any;
    }
  }
  if (node.routes.has(route.method)) {
    throw new MillraceError('CONFIG_INVALID', `duplicate route ${route.method} ${route.path}`, {
      details: { field: 'routes' },
    });
  }
  node.routes.set(route.method, { route, names });
}

function walk(
  node: Node,
  segments: readonly string[],
  at: number,
  values: string[],
): Node | undefined {
  const segment = segments[at];
  if (segment === undefined) return node.routes.size > 0 ? node : undefined;
  const literal = node.children.get(segment);
  const found = literal === undefined ? undefined : walk(literal, segments, at + 1, values);
  if (found !== undefined) return found;
  if (node.any === undefined || segment === '') return undefined;
  const length = values.push(segment);
  const other = walk(node.any, segments, at + 1, values);
  if (other === undefined) values.length = length - 1;
  return other;
}

function segmentsOf(path: string): string[] {
  return path.split('/').slice(1);
}

function decode(segment: string): string {
  try {
    const text = decodeURIComponent(segment);
    // Databases reject null characters, and no name contains one.
    if (!text.includes('\0')) return text;
  } catch (error) {
    throw new MillraceError('REQUEST_INVALID', 'the path has an invalid percent-encoding', {
      cause: error,
      details: { field: 'path' },
    });
  }
  throw new MillraceError('REQUEST_INVALID', 'the path contains a null character', {
    details: { field: 'path' },
  });
}

function emptyNode(): Node {
  return { children: new Map(), any: undefined, routes: new Map() };
}

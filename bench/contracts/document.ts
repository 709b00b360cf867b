// The helpers of the naming document, section 9, unchanged. The helpers check nothing and parse some tenants
// wrongly, so their speed is a reference, not a goal.

export function buildEventType(agg: string, action: string, v: number): string {
  return `${agg}.${action}.v${v}`;
}

export function buildStreamName(
  bc: string,
  agg: string,
  v: number,
  tenant: string,
  id: string,
): string {
  return `${bc}.${agg}.v${v}-${tenant}-${id}`;
}

export function parseStreamName(stream: string): Readonly<Record<string, unknown>> {
  const re =
    /^(?<category>(?<bc>[a-z0-9-]+)\.(?<agg>[a-z0-9-]+)\.v(?<v>\d+))-(?<tenant>[a-z0-9-]+)-(?<id>[A-Za-z0-9._-]+)$/;
  const m = stream.match(re);
  if (!m?.groups) throw new Error(`Invalid stream name: ${stream}`);
  return {
    category: m.groups['category'],
    bc: m.groups['bc'],
    agg: m.groups['agg'],
    version: Number(m.groups['v']),
    tenant: m.groups['tenant'],
    id: m.groups['id'],
  };
}

export function snapshotKey(
  tenant: string,
  bc: string,
  agg: string,
  v: number,
  id: string,
): string {
  return `app:{${tenant}}:${bc}:${agg}:v${v}:${id}`;
}

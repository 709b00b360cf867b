/** EventStoreDB's category: the part before the first hyphen; system streams have none. */
export function categoryOf(stream: string): string | undefined {
  if (stream.startsWith('$')) return undefined;
  const at = stream.indexOf('-');
  return at > 0 ? stream.slice(0, at) : undefined;
}

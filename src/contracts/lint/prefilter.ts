// Which files can hold a name at all: asked of the plain text, before its tree is built. It may say
// yes too often; where it says no, no rule could have found anything.

/** Written starts of names, also where `+` or `join` cuts them into pieces. */
const starts =
  /["'`](?:app|mq|job|checkpoint|sub|notification\.slack)(?:["'`:.]|\$\{)|\$(?:ce|et)-/;
/** A version behind a dot or alone in a piece: `.v1`, `.v${…}`, `'v1'`, `'.v' + …`. */
const versions = /[.:"'`][vV](?:\d|\$\{|["'`])/;
const calls =
  /defineEvent|build(?:EventType|StreamName|Category|SubscriptionName)|categoryStream|eventTypeStream|redisKeys|slackAddressing|[sS]ubjects|consumerGroups|Queue|Worker|FlowProducer|Processor|jobId|queueName|category|millrace-lint/;
/** An escape can hide anything. */
const escapes = /\\[ux0-7\n\r]/;
/** Behind a root that is computed. */
const domains = /[}"'`][.:](?:notify|events|tasks)\b|["'`](?:notify|events|tasks)["'`]/;

export function mayHoldNames(source: string, roots: readonly string[]): boolean {
  return (
    starts.test(source) ||
    versions.test(source) ||
    calls.test(source) ||
    escapes.test(source) ||
    domains.test(source) ||
    roots.some((root) => source.includes(root))
  );
}

// The headers of a request as they may be stored: values that could be secrets are masked. Pure.

/** All others may be credentials, such as `authorization` or a header that an endpoint asks for. */
const shown =
  /^(?:accept|content-(?:type|encoding|length)|user-agent|idempotency-key|webhook-(?:id|timestamp)|x-(?:correlation|tenant)-id|traceparent|ce-[a-z0-9]+)$/i;

const mask = '•••';
const valueCharsMax = 200;

export function maskedHeaders(
  headers: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      shown.test(name) ? value.slice(0, valueCharsMax) : mask,
    ]),
  );
}

// The module as an application configures it. Without SLACK_SECRET_KEYS no workspace can be configured: requests fail with the
// cause.

import { parseSecretKeys } from './secret-box.ts';
import { slackRequests } from './slack-requests.ts';

export function demo(
  env: Readonly<Record<string, string | undefined>>,
): ReturnType<typeof slackRequests> {
  const { SLACK_SECRET_KEYS: keys = '', SLACK_API_URL: apiUrl } = env;
  return slackRequests({
    secretKeys: keys === '' ? undefined : parseSecretKeys(keys),
    apiUrl: apiUrl === '' ? undefined : apiUrl,
  });
}

export default demo(process.env);

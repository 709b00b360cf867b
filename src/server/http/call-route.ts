// A route called by something else than an HTTP request: the same access, the same checks.

import { checkAccess } from './principal.ts';
import { checked } from './read-inputs.ts';
import type { Answer, ApiRequest, Route } from './route.ts';

export async function callRoute(route: Route, request: ApiRequest): Promise<Answer> {
  checkAccess(route.access, request.principal);
  const { params, query, body } = route;
  return route.handle({
    ...request,
    params: params === undefined ? {} : checked('path', params, request.params),
    query: query === undefined ? {} : checked('query', query, request.query),
    body: body === undefined ? undefined : checked('body', body, request.body),
  });
}

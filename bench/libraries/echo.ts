// Token and request body schema of both HTTP servers.

import { Type } from 'typebox';

export const token = 'bench';

export const bodySchema = Type.Object({
  id: Type.String(),
  payload: Type.Object({ amount: Type.Number() }),
});

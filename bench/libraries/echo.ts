// What both HTTP servers check.

import { Type } from 'typebox';

export const token = 'bench';

export const bodySchema = Type.Object({
  id: Type.String(),
  payload: Type.Object({ amount: Type.Number() }),
});

// What amounts and names look like wherever they come in.

import { z } from 'zod';

/** In the smallest unit of its currency: 12.50 USD is 1250. */
export const amount = z.int().positive();
export const currencyCode = z.string().regex(/^[A-Z]{3}$/);
/** Of something that has a stream: what a name may hold. */
export const streamId = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/);

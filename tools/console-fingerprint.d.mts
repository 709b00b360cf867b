export const consoleStamp: string;
export function consoleFingerprint(): string;
export function consoleIsBuilt(): boolean;

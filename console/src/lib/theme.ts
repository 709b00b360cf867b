// Light or dark: as the system, or as the user chose in this browser.

import { useSyncExternalStore } from 'react';

export type Theme = 'dark' | 'light' | 'system';

const key = 'millrace.theme';
const system = matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set<() => void>();

function chosen(): Theme {
  const stored = localStorage.getItem(key);
  return stored === 'dark' || stored === 'light' ? stored : 'system';
}

export function applyTheme(): void {
  const theme = chosen();
  const isDark = theme === 'dark' || (theme === 'system' && system.matches);
  document.documentElement.dataset['theme'] = isDark ? 'dark' : 'light';
}

export function setTheme(theme: Theme): void {
  if (theme === 'system') localStorage.removeItem(key);
  else localStorage.setItem(key, theme);
  applyTheme();
  for (const listener of listeners) listener();
}

system.addEventListener('change', applyTheme);

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, chosen);
}

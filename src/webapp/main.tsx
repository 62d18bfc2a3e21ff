import { render } from 'preact';
import { App } from './app.tsx';
import { language } from './messages.ts';

document.documentElement.lang = language;
render(<App />, document.body);

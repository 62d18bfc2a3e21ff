import highlighter from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import cpp from 'highlight.js/lib/languages/cpp';
import csharp from 'highlight.js/lib/languages/csharp';
import css from 'highlight.js/lib/languages/css';
import diff from 'highlight.js/lib/languages/diff';
import go from 'highlight.js/lib/languages/go';
import ini from 'highlight.js/lib/languages/ini';
import java from 'highlight.js/lib/languages/java';
import json from 'highlight.js/lib/languages/json';
import kotlin from 'highlight.js/lib/languages/kotlin';
import php from 'highlight.js/lib/languages/php';
import python from 'highlight.js/lib/languages/python';
import ruby from 'highlight.js/lib/languages/ruby';
import rust from 'highlight.js/lib/languages/rust';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';

const GRAMMARS = {
  ...{ bash, cpp, csharp, css, diff, go, ini, java, json, kotlin, php, python },
  ...{ ruby, rust, sql, typescript, xml, yaml },
};

/** Languages that are shown with the grammar of a larger one, because each grammar costs a few kB of script. */
const SERVED_BY = {
  bash: ['shell', 'console'],
  cpp: ['c', 'h'],
  css: ['scss', 'less'],
  typescript: ['javascript', 'js', 'jsx', 'mjs', 'cjs'],
};

for (const [name, grammar] of Object.entries(GRAMMARS)) highlighter.registerLanguage(name, grammar);
for (const [languageName, names] of Object.entries(SERVED_BY))
  highlighter.registerAliases(names, { languageName });

/** highlight.js with the languages that people keep as files and write in documents. */
export { highlighter };

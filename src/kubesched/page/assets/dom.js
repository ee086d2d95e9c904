// The libraries, as the modules of the page use them; their scripts come first and define globals.

const { h } = preact;
export const renderInto = preact.render;
export const { useState, useEffect, useLayoutEffect, useMemo, useRef } = preactHooks;
export const html = htm.bind(h);

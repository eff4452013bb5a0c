#include <sotto/console/page.h>

#include <string_view>

#include <fmt/format.h>

#include <sotto/base/text.h>

namespace sotto::console {
namespace {

constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--ink:#1c2333;--soft:#555f75;--paper:#fff;--line:#e2e6ee;
--grid:#e9ecf3;--frame:#8a93a8;--idle:#d9dee8;--node:#f4f7fb;--rim:#1f3a5f;--mark:#b3261e}
@media(prefers-color-scheme:dark){:root{--ink:#e8ebf2;--soft:#a5aec0;--paper:#12161d;--line:#2b323e;
--grid:#242b36;--frame:#6b7488;--idle:#39414f;--node:#1d2531;--rim:#9db8dc;--mark:#ff8a80}
.curve,.key line{filter:brightness(1.35)}}
body{font:15px/1.5 system-ui,"Segoe UI",Helvetica,Arial,sans-serif;color:var(--ink);
background:var(--paper);max-width:1120px;margin:2em auto;padding:0 1em}
h1{font-size:1.5em;margin-bottom:.2em}h2{font-size:1.15em;margin:2em 0 .3em}
h3{font-size:.95em;margin:1.2em 0 .2em}p.sub{color:var(--soft);margin-top:0}
table+p.sub{font-size:.9em;margin-top:-.8em}ol.sub{color:var(--soft);font-size:.9em}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(400px,100%),1fr));gap:14px}
.plots>svg,.plots>figure,svg.rows{width:100%;box-sizing:border-box;font-family:inherit;
border:1px solid var(--line);border-radius:8px}
.plots>figure{margin:0;padding:6px 10px;display:flex;flex-direction:column}
figcaption{text-align:center;font-size:13px;font-weight:600}
figure p{margin:.2em 0;font-size:.85em;color:var(--soft);text-align:center}
svg.load{flex:1;min-height:0;max-height:310px}
.grid{stroke:var(--grid);stroke-width:1}.frame{fill:none;stroke:var(--frame);stroke-width:1}
.tick{font-size:11px;fill:var(--soft)}.label{font-size:12px;fill:var(--ink)}
.title{font-size:13px;font-weight:600;fill:var(--ink)}.curve{fill:none;stroke-width:2}
.mark line{stroke:var(--mark);stroke-width:1.3}
.mark rect{fill:var(--mark);opacity:.13}.mark text{fill:var(--mark);font-size:10px}
.target line{stroke:var(--ink);stroke-width:1}
.target text{fill:var(--ink);font-size:10.5px}
.node{fill:var(--node);stroke:var(--rim)}.rank{fill:var(--rim)}
.p0{fill:#2f7fc1}.p1{fill:#e69f00}.p2{fill:#1fa187}.p3{fill:var(--idle)}
.keys{font-size:.9em;color:var(--soft);margin:.3em 0}
.swatch{width:11px;height:11px;margin:0 .35em 0 .9em}
table{border-collapse:collapse;margin:1.2em 0;width:100%}
@media(max-width:800px){table{display:block;overflow-x:auto;max-width:100%}
th:first-child,td:first-child{position:sticky;left:0;background:var(--paper);min-width:7em}
.wide{overflow-x:auto}.wide svg{min-width:720px}}
th,td{padding:.35em .6em;white-space:nowrap;font-size:.93em;
text-align:right;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left;white-space:normal;overflow-wrap:anywhere;
min-width:11em} th{color:var(--soft);font-weight:600}
.key{width:26px;height:10px;margin-right:.5em;stroke-width:3}
)";

}  // namespace

std::string open_page(const std::string& title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>{1}</title>"
      "<style>{0}</style></head><body>\n<h1>{1}</h1>\n",
      kStyle, markup_text(title));
}

std::string close_page() { return "</body></html>\n"; }

}  // namespace sotto::console

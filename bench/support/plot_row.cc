#include "plot_row.h"

#include <cstddef>

#include <fmt/format.h>

#include <sotto/base/text.h>
#include <sotto/console/plot.h>

namespace sotto::bench {

std::string plot_row(const std::vector<std::string>& plots, const std::vector<std::string>& names) {
  constexpr std::size_t kWidth = 460;
  constexpr std::size_t kHeight = 300;
  constexpr std::size_t kLine = 18;
  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" font-family="sans-serif">)"
      R"(<style>.grid{{stroke:#e9ecf3}}.frame{{fill:none;stroke:#8a93a8}}.tick{{font-size:11px}})"
      R"(.label,.key{{font-size:12px}}.title{{font-size:13px;font-weight:600}})"
      R"(.curve{{fill:none;stroke-width:2}}</style><rect width="{0}" height="{1}" fill="white"/>)",
      kWidth * plots.size(), kHeight + kLine * (names.size() + 1));
  for (std::size_t k = 0; k < plots.size(); ++k) {
    svg += fmt::format(R"(<svg x="{}" width="{}" height="{}">{}</svg>)", k * kWidth, kWidth,
                       kHeight, plots[k]);
  }
  for (std::size_t k = 0; k < names.size(); ++k) {
    const std::size_t y = kHeight + kLine * (k + 1);
    svg += fmt::format(R"(<svg x="62" y="{}">{}</svg><text class="key" x="100" y="{}">{}</text>)",
                       y - kLine / 2, console::curve_key(k), y, markup_text(names[k]));
  }
  return svg + "</svg>\n";
}

}  // namespace sotto::bench

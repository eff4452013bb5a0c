#include "compare_page.h"

#include <fmt/format.h>

#include <sotto/console/page.h>

#include "runs/run_page.h"

namespace sotto::cli {

std::string compare_page(const std::vector<study::RepeatedRun>& runs,
                         const std::vector<RunTable>& tables) {
  const study::FinishedRun& first = first_result(runs);
  const std::string head = fmt::format("{} over {}", first.task, first.transport);
  return page_head(head, runs) + draw_tables(tables) +
         draw_curves(runs,
                     {{round_of, "rounds"},
                      {point_figure(&HistoryPoint::bytes_per_node), "bytes sent per node", true},
                      {point_figure(&HistoryPoint::time_s), "seconds"}}) +
         console::close_page();
}

}  // namespace sotto::cli

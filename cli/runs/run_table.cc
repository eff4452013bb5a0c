#include "run_table.h"

namespace sotto::cli {

void show_table(const RunTable& table, const console::Output& output) {
  output.line("");
  output.table(table.titles, table.rows);
  for (const std::string& note : table.notes) {
    output.line(note);
  }
}

}  // namespace sotto::cli

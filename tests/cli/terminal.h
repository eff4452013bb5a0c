// A program on a terminal of its own, and what stands on its screen.
//
// The terminal knows what the program may use, and takes note of everything else: carriage return,
// newline, cursor up (ESC[nA), erase to the end of the line (ESC[K) and of the screen (ESC[J).
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/program.h"

namespace sotto::test {

class Screen {
 public:
  void take(std::string_view text) {
    for (const char c : text) {
      take(c);
    }
  }
  /// The lines without blanks at their ends.
  std::vector<std::string> lines() const {
    std::vector<std::string> shown;
    for (const auto& cells : rows_) {
      std::string line;
      for (const std::string& cell : cells) {
        line += cell;
      }
      shown.push_back(line.substr(0, line.find_last_not_of(' ') + 1));
    }
    return shown;
  }
  std::size_t row() const { return row_; }
  std::size_t column() const { return column_; }
  std::size_t widest() const { return widest_; }
  const std::string& unknown() const { return unknown_; }

 private:
  void take(char c) {
    if (!escape_.empty()) {
      escape_ += c;
      if (escape_.size() > 2 && c >= '@' && c <= '~') {
        obey(escape_.substr(2));
        escape_.clear();
      }
    } else if (c == '\x1b') {
      escape_ = c;
    } else if (c == '\r') {
      column_ = 0;
    } else if (c == '\n') {
      ++row_;
    } else if ((static_cast<unsigned char>(c) & 0xC0U) == 0x80U) {
      cell(column_ - 1) += c;
    } else {
      cell(column_++) = std::string(1, c);
      widest_ = std::max(widest_, column_);
    }
  }
  void obey(const std::string& sequence) {
    if (sequence.back() == 'A') {
      row_ -= std::min(row_, static_cast<std::size_t>(std::stoi(sequence)));
    } else if (sequence == "K" || sequence == "J") {
      cell(column_);
      rows_[row_].resize(column_);
      rows_.resize(sequence == "J" ? row_ + 1 : rows_.size());
    } else {
      unknown_ += "ESC[" + sequence + ' ';
    }
  }
  std::string& cell(std::size_t column) {
    rows_.resize(std::max(rows_.size(), row_ + 1));
    auto& cells = rows_[row_];
    if (cells.size() <= column) {
      cells.resize(column + 1, " ");
    }
    return cells[column];
  }

  std::vector<std::vector<std::string>> rows_;
  std::size_t row_ = 0;
  std::size_t column_ = 0;
  std::size_t widest_ = 0;
  std::string escape_;
  std::string unknown_;
};

/// A process whose standard output and error are a terminal. Killed if it still runs in the end.
class OnTerminal {
 public:
  OnTerminal(Arguments arguments, unsigned short columns, unsigned short rows,
             const std::string& kind = "xterm") {
    master_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(master_ >= 0);
    REQUIRE(::grantpt(master_) == 0);
    REQUIRE(::unlockpt(master_) == 0);
    const std::string name = ::ptsname(master_);
    slave_ = ::open(name.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
    winsize size{};
    size.ws_col = columns;
    size.ws_row = rows;
    REQUIRE(::ioctl(slave_, TIOCSWINSZ, &size) == 0);
    REQUIRE(::tcgetattr(slave_, &before_) == 0);
    spawn(std::move(arguments), kind);
    ::close(slave_);  // the terminal then says when the program's last descriptor is closed
  }
  ~OnTerminal() {
    if (!ended_) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(master_);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;

  void send(int signal) const { ::kill(pid_, signal); }
  /// Reads until `text` has come; false when the program ends before.
  bool wait_for(std::string_view text) {
    while (read_.find(text) == std::string::npos) {
      if (!read_more()) {
        return false;
      }
    }
    return true;
  }
  /// Waits for the program's end. Exit status, or 128 + the signal that ended it.
  int wait() {
    while (read_more()) {
    }
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    ended_ = true;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  const std::string& text() const { return read_; }
  Screen screen() const {
    Screen screen;
    screen.take(read_);
    return screen;
  }
  /// Whether the terminal's modes are those that it had.
  bool modes_kept() const {
    termios now{};
    return ::tcgetattr(master_, &now) == 0 && now.c_iflag == before_.c_iflag &&
           now.c_oflag == before_.c_oflag && now.c_lflag == before_.c_lflag;
  }

 private:
  void spawn(Arguments arguments, const std::string& kind) {
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, slave_, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, slave_, STDERR_FILENO);
    std::vector<char*> argv;
    for (std::string& argument : arguments) {
      argv.push_back(argument.data());
    }
    argv.push_back(nullptr);
    std::vector<std::string> entries;
    for (const auto& [name, value] : environment({{"TERM", kind}})) {
      entries.push_back(name + "=" + value);
    }
    std::vector<char*> envp;
    for (std::string& entry : entries) {
      envp.push_back(entry.data());
    }
    envp.push_back(nullptr);
    const int failed = ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), envp.data());
    ::posix_spawn_file_actions_destroy(&actions);
    REQUIRE(failed == 0);
  }
  bool read_more() {
    char buffer[4096];
    const auto got = ::read(master_, buffer, sizeof buffer);
    if (got > 0) {
      read_.append(buffer, static_cast<std::size_t>(got));
    }
    return got > 0;
  }

  int master_ = -1;
  int slave_ = -1;
  pid_t pid_ = -1;
  termios before_{};
  std::string read_;
  bool ended_ = false;
};

}  // namespace sotto::test

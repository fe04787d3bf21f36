// The words behind a subcommand: names without dashes in their order, and options with a value.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

class Arguments {
  public:
    // `argv[0]` is the subcommand, and `flags` are the options without a value.
    Arguments(int argc, char **argv, const std::vector<std::string> &flags) {
        for (int i = 1; i < argc; i++) {
            std::string word = argv[i];
            if (word.rfind("--", 0) != 0) {
                names.push_back(word);
                continue;
            }
            bool flag = false;
            for (const auto &name : flags) flag |= word == name;
            if (!flag && i + 1 == argc) throw std::runtime_error(word + " needs a value");
            options_[word] = flag ? "1" : argv[++i];
        }
    }

    std::string text(const std::string &option, const std::string &otherwise) {
        auto at = options_.find(option);
        if (at == options_.end()) return otherwise;
        std::string value = at->second;
        options_.erase(at);
        return value;
    }

    int number(const std::string &option, int otherwise, int least) {
        std::string value = text(option, std::to_string(otherwise));
        size_t end = 0;
        int number = 0;
        try {
            number = std::stoi(value, &end);
        } catch (const std::exception &) {
            end = value.size() + 1;
        }
        if (end != value.size() || number < least) {
            throw std::runtime_error(option + " is " + value + ", and must be a number from " + std::to_string(least) + " on");
        }
        return number;
    }

    bool flag(const std::string &option) { return !text(option, "").empty(); }

    // Refuses options that nothing has asked for.
    void finish() const {
        if (!options_.empty()) throw std::runtime_error("there is no option " + options_.begin()->first);
    }

    std::vector<std::string> names;

  private:
    std::map<std::string, std::string> options_;
};
